"""Pulumi's docker provider plugin: the engine downloads the published one, except where it had to be built itself."""

from importlib.metadata import version
from pathlib import Path

from tools.provision.beside import Module, ensure
from tools.provision.engine import BUILT, Engine

PLUGIN = "pulumi-resource-docker"


def provide(root: Path, engine: Engine) -> str:
    """Build the plugin beside a pulumi that was built here; says where it comes from."""
    if engine.origin != BUILT:
        return "downloaded by pulumi when it is needed"
    release = version("pulumi-docker")
    flags = ("-s", "-w", f"-X main.version={release}")
    return ensure(engine, Module(root / "tools" / "pulumi" / "docker-provider", {PLUGIN: "."}, release, flags))
