"""Languages other than Python: their hosts are part of pulumi, unless pulumi itself had to be built."""

from pathlib import Path

from tools.provision.engine import BUILT, Engine
from tools.provision.go_programs import Module, ensure

YAML = "pulumi-language-yaml"
NODEJS_SDK = "pulumi-nodejs-sdk"
"""Writes a package's SDK for TypeScript, which Pulumi's host for Node.js does otherwise."""


def provide(root: Path, engine: Engine) -> str:
    """Build them next to a pulumi that was built here; returns their origin."""
    if engine.origin != BUILT:
        return "included in pulumi"
    programs = {YAML: f"github.com/pulumi/pulumi-yaml/cmd/{YAML}", NODEJS_SDK: "."}
    ensure(engine.folder.parent, Module(root / "tools" / "pulumi" / "languages", programs))
    return f"{BUILT} ({engine.folder})"
