"""Languages other than Python: their hosts come with pulumi, except where it had to be built itself."""

from pathlib import Path

from tools.provision.beside import Module, ensure
from tools.provision.engine import BUILT, Engine

YAML = "pulumi-language-yaml"
NODEJS_SDK = "pulumi-nodejs-sdk"
"""Writes a package's SDK for TypeScript, which Pulumi's host for Node.js does where it is."""


def provide(root: Path, engine: Engine) -> str:
    """Build them beside a pulumi that was built here; says where they come from."""
    if engine.origin != BUILT:
        return "they come with pulumi"
    programs = {YAML: f"github.com/pulumi/pulumi-yaml/cmd/{YAML}", NODEJS_SDK: "."}
    ensure(engine.folder.parent, Module(root / "tools" / "pulumi" / "languages", programs))
    return f"{BUILT} ({engine.folder})"
