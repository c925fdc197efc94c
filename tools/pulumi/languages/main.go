// Writes a package's SDK for TypeScript, as `pulumi package gen-sdk --language nodejs` does where Pulumi's host for Node.js is.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: pulumi-nodejs-sdk SCHEMA FOLDER")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		log.Fatal(err)
	}
	read, diagnostics, err := schema.BindSpec(spec, schema.NewNullLoader(), schema.ValidationOptions{})
	if err != nil || diagnostics.HasErrors() {
		log.Fatal(err, diagnostics)
	}
	files, err := nodejs.GeneratePackage("tfdeploy", read, nil, nil, true, nil)
	if err != nil {
		log.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(os.Args[2], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o666); err != nil {
			log.Fatal(err)
		}
	}
}
