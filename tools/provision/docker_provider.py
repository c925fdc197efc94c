"""Pulumi's docker provider plugin: the engine downloads the published one, except where it had to be built itself."""

import hashlib
import shutil
from importlib.metadata import version
from pathlib import Path

from tools.provision.engine import BUILT, Engine
from tools.provision.steps import SetupError, locked, run

PLUGIN = "pulumi-resource-docker"


def ensure(root: Path, engine: Engine) -> str:
    """Build the plugin beside a pulumi that was built here; says where it comes from."""
    if engine.origin != BUILT:
        return "downloaded by pulumi when it is needed"
    module = root / "tools" / "pulumi" / "docker-provider"
    kept = engine.folder.parent
    release = version("pulumi-docker")
    wanted = _content(module, release)
    if not _stands(kept, wanted):
        with locked(kept.parent / "lock"):
            if not _stands(kept, wanted):
                _build(kept, module, release)
                (kept / PLUGIN).write_text(f"{wanted}\n")
    return f"{BUILT} ({engine.folder})"


def _content(module: Path, release: str) -> str:
    files = b"".join((module / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
    return hashlib.sha256(files + release.encode()).hexdigest()


def _stands(kept: Path, wanted: str) -> bool:
    stamp = kept / PLUGIN
    return (kept / "bin" / PLUGIN).exists() and stamp.exists() and stamp.read_text().strip() == wanted


def _build(kept: Path, module: Path, release: str) -> None:
    """Build a draft beside the folder on PATH, then rename it: what is there is always whole."""
    go = shutil.which("go")
    if not go:
        raise SetupError(f"there is no `go` on PATH to build {PLUGIN} with")
    draft = kept / f"{PLUGIN}.draft"
    build = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    command: list[str | Path] = [*build, "-ldflags", f"-s -w -X main.version={release}", "-o", draft, "."]
    env = {"CGO_ENABLED": "0", "GOWORK": "off"}
    run("the docker provider plugin (minutes)", command, kept.parent / "build.log", env, module)
    draft.rename(kept / "bin" / PLUGIN)
