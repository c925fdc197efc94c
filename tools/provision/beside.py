"""Programs that are built from one of our Go modules, once for each content."""

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
        """What identifies the programs: they are built again when it changes."""
        files = b"".join((self.folder / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
        return hashlib.sha256(files + self.release.encode()).hexdigest()


def ensure(folder_of_programs: Path, module: Module) -> None:
    """Build what is missing into `folder_of_programs/bin`, once."""
    if not _is_built(folder_of_programs, module):
        with locked(folder_of_programs.parent / "lock"):
            if not _is_built(folder_of_programs, module):
                _build(folder_of_programs, module)
                _stamp(folder_of_programs, module).write_text(f"{module.content}\n")


def _stamp(folder_of_programs: Path, module: Module) -> Path:
    return folder_of_programs / next(iter(module.programs))


def _is_built(folder_of_programs: Path, module: Module) -> bool:
    stamp = _stamp(folder_of_programs, module)
    exist = all((folder_of_programs / "bin" / name).exists() for name in module.programs)
    return exist and stamp.exists() and stamp.read_text().strip() == module.content


def _build(folder_of_programs: Path, module: Module) -> None:
    """Build drafts beside the folder on PATH, then rename them: what exists is always complete."""
    go = shutil.which("go")
    if not go:
        raise SetupError(f"`go` is not on PATH to build {', '.join(module.programs)} with")
    build = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", " ".join(module.flags), "-o"]
    env = {"CGO_ENABLED": "0", "GOWORK": "off"}
    (folder_of_programs / "bin").mkdir(parents=True, exist_ok=True)
    for name, package in module.programs.items():
        draft = folder_of_programs / f"{name}.draft"
        run(f"{name} (minutes)", [*build, draft, package], folder_of_programs.parent / "build.log", env, module.folder)
        draft.rename(folder_of_programs / "bin" / name)
