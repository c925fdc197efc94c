"""Changes of the Python language host that is built from Go modules: it is older than Pulumi's present one."""

from tools.provision import go_programs

SDK = "github.com/pulumi/pulumi/sdk/v3"
HOST = "pulumi-language-python"

_RUN_PLUGIN = """\
func (host *pythonLanguageHost) RunPlugin(
	req *pulumirpc.RunPluginRequest, server pulumirpc.LanguageRuntime_RunPluginServer,
) error {
"""
_REQUIRED = "\treq *pulumirpc.GetRequiredPluginsRequest,\n) (*pulumirpc.GetRequiredPluginsResponse, error) {\n"
_PLUGIN = """\
// inPlugin is the host with the virtual environment of the plugin in a folder; for the folder of a program it is the same.
func (host *pythonLanguageHost) inPlugin(folder string) *pythonLanguageHost {
	if !python.IsPlugin(folder) {
		return host
	}
	plugin := *host
	plugin.cwd, plugin.virtualenv, plugin.virtualenvPath = folder, "venv", filepath.Join(folder, "venv")
	return &plugin
}

// pluginFolder reads info.program_directory, which this version of the message does not have yet.
func pluginFolder(message []byte) string {
	for _, wanted := range []protowire.Number{5, 2} {
		found := []byte(nil)
		for len(message) > 0 {
			number, kind, size := protowire.ConsumeTag(message)
			if size < 0 {
				return ""
			}
			if number == wanted && kind == protowire.BytesType {
				found, _ = protowire.ConsumeBytes(message[size:])
			}
			length := protowire.ConsumeFieldValue(number, kind, message[size:])
			if length < 0 {
				return ""
			}
			message = message[size+length:]
		}
		message = found
	}
	return string(message)
}

"""

HOST_PATCH = go_programs.Patch(
    SDK,
    {
        "python/python.go": (
            "func InstallDependencies(",
            """\
// IsPlugin is whether a folder has a plugin.
func IsPlugin(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "PulumiPlugin.yaml"))
	return err == nil
}

func InstallDependencies(""",
            '\tprintmsg("Creating virtual environment...")\n',
            """\
	if venvDir == "" && !IsPlugin(root) {
		return nil
	}
	if venvDir == "" {
		venvDir = "venv"
	}

	printmsg("Creating virtual environment...")
""",
        ),
        f"python/cmd/{HOST}/main.go": (
            '\t"google.golang.org/grpc"\n',
            '\t"google.golang.org/grpc"\n\t"google.golang.org/protobuf/encoding/protowire"\n',
            _REQUIRED,
            f"{_REQUIRED}\thost = host.inPlugin(req.Pwd)\n",
            _RUN_PLUGIN,
            f"""\
{_PLUGIN}{_RUN_PLUGIN}\
	if folder := pluginFolder(req.ProtoReflect().GetUnknown()); folder != "" {{
		req.Program, host = folder, host.inPlugin(folder)
	}}
""",
        ),
    },
    # What the language host starts: programs, and dynamic providers.
    (f"python/cmd/{HOST}-exec", "python/dist/pulumi-resource-pulumi-python"),
)
"""What the present host does, and this old one does not. For a project without a virtual environment it creates none, where the old one
creates one in the folder of the project: `pulumi new` and `pulumi install` ask for it. A folder with a PulumiPlugin.yaml gets one, and
its `__main__.py` runs in it."""
