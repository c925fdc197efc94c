// A docker provider plugin for machines that cannot download the published one: the same Terraform provider, bridged in
// the same way. What the published plugin adds in code of its own, `docker.Image`, is not in it, and it builds no images on Kubernetes.
package main

import (
	"encoding/json"
	"io"
	"log"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfgen"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/terraform-providers/terraform-provider-docker/internal/provider"
)

// Set by the build: the version of the plugin that this one stands in for.
var version string

// Pulumi's names for the Terraform provider's resources.
var names = map[string][2]string{
	"docker_config":         {"serviceConfig", "ServiceConfig"},
	"docker_container":      {"container", "Container"},
	"docker_image":          {"remoteImage", "RemoteImage"},
	"docker_network":        {"network", "Network"},
	"docker_plugin":         {"plugin", "Plugin"},
	"docker_registry_image": {"registryImage", "RegistryImage"},
	"docker_secret":         {"secret", "Secret"},
	"docker_service":        {"service", "Service"},
	"docker_tag":            {"tag", "Tag"},
	"docker_volume":         {"volume", "Volume"},
}

func info() tfbridge.ProviderInfo {
	resources := map[string]*tfbridge.ResourceInfo{}
	for name, pulumi := range names {
		resources[name] = &tfbridge.ResourceInfo{Tok: tokens.Type("docker:index/" + pulumi[0] + ":" + pulumi[1])}
	}
	resources["docker_container"].DeleteBeforeReplace = true
	resources["docker_container"].Fields = map[string]*tfbridge.SchemaInfo{
		// Lists whose names stay singular.
		"command":           {Name: "command"},
		"networks_advanced": {Name: "networksAdvanced"},
	}
	// An image's name says what is pulled: it is never made up.
	resources["docker_image"].Fields = map[string]*tfbridge.SchemaInfo{"name": {Name: "name"}}

	bridged := tfbridge.ProviderInfo{
		P:         shim.NewProvider(provider.New(version)()),
		Name:      "docker",
		Version:   version,
		Config:    map[string]*tfbridge.SchemaInfo{"registry_auth": {Name: "registryAuth"}},
		Resources: resources,
		IgnoreMappings: []string{
			"docker_buildx_builder", "docker_image", "docker_logs", "docker_network", "docker_plugin",
			"docker_registry_image", "docker_registry_image_manifests",
		},
	}
	bridged.SetAutonaming(255, "-")
	return bridged
}

func main() {
	bridged := info()
	generated, err := tfgen.GenerateSchemaWithOptions(tfgen.GenerateSchemaOptions{
		ProviderInfo:    bridged,
		DiagnosticsSink: diag.DefaultSink(io.Discard, io.Discard, diag.FormatOptions{Color: colors.Never}),
		XInMemoryDocs:   true,
	})
	if err != nil {
		log.Fatal(err)
	}
	schema, err := json.Marshal(generated.PackageSpec)
	if err != nil {
		log.Fatal(err)
	}
	tfbridge.Main("docker", version, bridged, schema)
}
