"""Pulumi's provider plugins in the user's plugin folder: fetched by set-up, so that no update downloads one."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tools.provision import go_programs
from tools.provision.engine import Engine, cache_folder
from tools.provision.steps import SetupError, locked, report, run

TFDEPLOY = """\
#!/bin/sh
exec pulumi-resource-tfdeploy "$@"
"""
DOCKER_MODULE = Path("tools", "pulumi", "docker-provider")
_KUBERNETES = ('\t_ "github.com/docker/buildx/driver/kubernetes"\n', "")
DOCKER_PATCH = go_programs.Patch(
    "github.com/terraform-providers/terraform-provider-docker",
    {
        "internal/provider/docker_buildx_build.go": _KUBERNETES,
        "internal/provider/resource_docker_buildx_builder.go": _KUBERNETES,
    },
)
"""Without builders of images that run on Kubernetes, as without `docker_compose`, half as many packages have to be compiled."""


def pulumi_home() -> Path:
    """The user's Pulumi home, as tools/activate sets it."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


@dataclass(frozen=True)
class Plugin:
    """The plugin that the installed Python package `pulumi-NAME` needs."""

    name: str
    engine: Engine

    @property
    def release(self) -> str:
        return version(f"pulumi-{self.name}")

    @property
    def program(self) -> str:
        return f"pulumi-resource-{self.name}"

    @property
    def folder(self) -> Path:
        """Where Pulumi keeps it."""
        return pulumi_home() / "plugins" / f"resource-{self.name}-v{self.release}"

    @property
    def lock(self) -> Path:
        return self.folder.with_name(f".{self.folder.name}.setup")

    @property
    def complete(self) -> bool:
        """Whether it is installed. While Pulumi still fills its folder, there is a file `.partial` next to it."""
        partial = self.folder.with_name(f"{self.folder.name}.partial")
        return (self.folder / self.program).exists() and not partial.exists()

    def install(self, *options: str) -> None:
        """Have Pulumi install it.

        Raises:
            SetupError: it could not; the message ends with Pulumi's last lines.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        pulumi = str(self.engine.folder / "pulumi")
        command = [pulumi, "plugin", "install", "resource", self.name, self.release, *options]
        # Pulumi would take the home folder of the user database, which HOME need not be.
        env = {"PULUMI_HOME": str(pulumi_home()), "PULUMI_SKIP_UPDATE_CHECK": "true"}
        log = self.folder.with_name(f".{self.folder.name}.log")
        run(f"Pulumi's provider for {self.name} {self.release}", [*command, "--color=never"], log, env)
        log.unlink()


def provide_tfdeploy(engine: Engine) -> str:
    """Install what starts the `pulumi-resource-tfdeploy` of the environment, for programs in other languages; returns its folder.

    An update finds that on `PATH`, but `pulumi new` and `pulumi install` look among the installed plugins alone, and would then ask
    for a published one.
    """
    plugin = Plugin("tfdeploy", engine)
    if not plugin.complete:
        with locked(plugin.lock), tempfile.TemporaryDirectory() as folder:
            if not plugin.complete:
                program = Path(folder, plugin.program)
                program.write_text(TFDEPLOY)
                program.chmod(0o755)
                plugin.install("--file", str(program))
    return str(plugin.folder)


def provide_aws(engine: Engine) -> str:
    """Fetch the AWS provider; returns its folder.

    Raises:
        SetupError: it cannot be downloaded.
    """
    plugin = Plugin("aws", engine)
    if not plugin.complete:
        with locked(plugin.lock):
            if not plugin.complete:
                plugin.install()
    return str(plugin.folder)


def provide_docker(root: Path, engine: Engine) -> str:
    """Fetch the published docker provider, or build it where it cannot be downloaded; returns its folder.

    Raises:
        SetupError: it can be neither downloaded nor built.
    """
    plugin = Plugin("docker", engine)
    module = docker_module(root, plugin.release)
    if not _current(plugin, module):
        with locked(plugin.lock):
            if not _current(plugin, module):
                _fetch_or_build(plugin, module)
    return f"{plugin.folder}{', built here' if _mark(plugin).exists() else ''}"


def docker_module(root: Path, release: str) -> go_programs.Module:
    """What a docker provider of this release is built from."""
    flags = f"-s -w -X main.version={release}"
    programs = {"pulumi-resource-docker": "."}
    return go_programs.Module(root / DOCKER_MODULE, programs, release, flags, "no_compose", DOCKER_PATCH)


def _mark(plugin: Plugin) -> Path:
    """The file that names what a plugin was built from, if it was built here."""
    return plugin.folder / "built-from"


def _current(plugin: Plugin, module: go_programs.Module) -> bool:
    """Whether it is the published one, or was built from what the module is now."""
    mark = _mark(plugin)
    return plugin.complete and (not mark.exists() or mark.read_text().strip() == module.content)


def _fetch_or_build(plugin: Plugin, module: go_programs.Module) -> None:
    shutil.rmtree(plugin.folder, ignore_errors=True)
    try:
        plugin.install()
    except SetupError as error:
        report(f"the published provider cannot be had ({_reason(error)}); building it, once")
    else:
        return
    folder = cache_folder() / f"docker-provider-{plugin.release}"
    go_programs.ensure(folder, module)
    plugin.install("--file", str(folder / "bin" / plugin.program))
    _mark(plugin).write_text(f"{module.content}\n")


def _reason(error: SetupError) -> str:
    """Pulumi's reason why it could not download: of its last attempt, else its last line."""
    lines = str(error).splitlines()
    reasons = [line.partition("downloading plugin: ")[2] for line in lines if "downloading plugin: " in line]
    return [lines[-1], *reasons][-1]
