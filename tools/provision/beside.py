"""Programs that are built from a Go module of ours, each once for its content."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.provision.steps import SetupError, locked, run


@dataclass(frozen=True)
class Module:
    """Programs of one Go module: name to package."""

    folder: Path
    programs: Mapping[str, str]
    release: str = ""
    flags: Sequence[str] = field(default=("-s", "-w"))

    @property
    def content(self) -> str:
        """What names the programs: they are built anew when it changes."""
        files = b"".join((self.folder / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
        return hashlib.sha256(files + self.release.encode()).hexdigest()


def ensure(kept: Path, module: Module) -> None:
    """Build what is missing into `kept/bin`, once."""
    if not _stands(kept, module):
        with locked(kept.parent / "lock"):
            if not _stands(kept, module):
                _build(kept, module)
                _stamp(kept, module).write_text(f"{module.content}\n")


def _stamp(kept: Path, module: Module) -> Path:
    return kept / next(iter(module.programs))


def _stands(kept: Path, module: Module) -> bool:
    stamp = _stamp(kept, module)
    there = all((kept / "bin" / name).exists() for name in module.programs)
    return there and stamp.exists() and stamp.read_text().strip() == module.content


def _build(kept: Path, module: Module) -> None:
    """Build drafts beside the folder on PATH, then rename them: what is there is always whole."""
    go = shutil.which("go")
    if not go:
        raise SetupError(f"there is no `go` on PATH to build {', '.join(module.programs)} with")
    build = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", " ".join(module.flags), "-o"]
    env = {"CGO_ENABLED": "0", "GOWORK": "off"}
    (kept / "bin").mkdir(parents=True, exist_ok=True)
    for name, package in module.programs.items():
        draft = kept / f"{name}.draft"
        run(f"{name} (minutes)", [*build, draft, package], kept.parent / "build.log", env, module.folder)
        draft.rename(kept / "bin" / name)
