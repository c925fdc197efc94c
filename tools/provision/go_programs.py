"""Programs that are built from one of our Go modules, once for each content."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.provision.steps import SetupError, locked, run

ENV = {"CGO_ENABLED": "0", "GOWORK": "off", "GOGC": "off", "GOMEMLIMIT": "1GiB"}
"""A compiler runs for a second, and needs a quarter less processor time if it does not collect its memory."""

BUILD = ("build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")
"""The same for all programs, so that each package that several of them contain is compiled once. `-v` names the package that is
compiled: without it, the last line during minutes of compiling is that of a download, which looks like one that hangs."""


@dataclass(frozen=True)
class Patch:
    """Changes in one of a program's dependencies: by file, what it contains and what that is replaced by, once or in turn."""

    module: str
    texts: Mapping[str, tuple[str, ...]]
    scripts: Sequence[str] = ()
    """Files of the dependency that the program needs in its folder."""


@dataclass(frozen=True)
class Module:
    """Programs of one Go module: name to package."""

    folder: Path
    programs: Mapping[str, str]
    release: str = ""
    flags: str = "-s -w"
    tags: str = ""
    patch: Patch | None = None

    @property
    def content(self) -> str:
        """What identifies the programs: they are built again when it changes."""
        files = [self.folder / "go.mod", self.folder / "go.sum", *sorted(self.folder.glob("*.go"))]
        texts = b"".join(file.read_bytes() for file in files if file.exists())
        return hashlib.sha256(texts + repr((self.release, self.tags, self.patch)).encode()).hexdigest()


def ensure(folder_of_programs: Path, module: Module) -> None:
    """Build what is missing into `folder_of_programs/bin`, once."""
    if not _is_built(folder_of_programs, module):
        with locked(folder_of_programs.parent / f"{_stamp(folder_of_programs, module).name}.lock"):
            if not _is_built(folder_of_programs, module):
                build(folder_of_programs, module)
                _stamp(folder_of_programs, module).write_text(f"{module.content}\n")


def _stamp(folder_of_programs: Path, module: Module) -> Path:
    return folder_of_programs / next(iter(module.programs))


def _is_built(folder_of_programs: Path, module: Module) -> bool:
    stamp = _stamp(folder_of_programs, module)
    exist = all((folder_of_programs / "bin" / name).exists() for name in module.programs)
    return exist and stamp.exists() and stamp.read_text().strip() == module.content


def build(folder_of_programs: Path, module: Module) -> None:
    """Build drafts beside the folder on PATH, then rename them: what exists is always complete.

    Raises:
        SetupError: there is no Go, or the build failed.
    """
    go = shutil.which("go")
    if not go:
        raise SetupError(f"`go` is not on PATH to build {', '.join(module.programs)} with")
    (folder_of_programs / "bin").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        command = [go, *BUILD, "-ldflags", module.flags, "-tags", module.tags]
        source = Path(temporary, "source")
        if module.patch:
            command.append(f"-modfile={_patched(go, module.folder, module.patch, source)}")
        drafts = {name: folder_of_programs / f"{name}.draft" for name in module.programs}
        for name, package in module.programs.items():
            log = folder_of_programs.parent / f"{name}.log"
            run(f"{name} (minutes)", [*command, "-o", drafts[name], package], log, ENV, module.folder)
        for script in module.patch.scripts if module.patch else ():
            name = Path(script).name
            drafts[name] = shutil.copyfile(source / script, folder_of_programs / f"{name}.draft")
            drafts[name].chmod(0o755)
        for name, draft in reversed(drafts.items()):
            draft.rename(folder_of_programs / "bin" / name)


def _patched(go: str, folder: Path, patch: Patch, copy: Path) -> Path:
    """The go.mod in `folder`, with a patched copy of the dependency in the place of the one in the cache of modules."""
    download = [go, "mod", "download", "-json", patch.module]
    done = subprocess.run(download, env={**os.environ, **ENV}, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupError(f"{patch.module} cannot be downloaded: {done.stderr.strip() or done.stdout.strip()}")
    shutil.copytree(json.loads(done.stdout)["Dir"], copy, copy_function=shutil.copyfile)
    for directory in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    for name, texts in patch.texts.items():
        text = (copy / name).read_text()
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            if old not in text:
                raise SetupError(
                    f"{name} of {patch.module} does not contain what tools/provision replaces in it: {old}"
                )
            text = text.replace(old, new)
        (copy / name).write_text(text)
    module = copy.with_name("go.mod")
    shutil.copyfile(folder / "go.sum", copy.with_name("go.sum"))
    shutil.copyfile(folder / "go.mod", module)
    subprocess.run(
        [go, "mod", "edit", f"-replace={patch.module}={copy}", module], env={**os.environ, **ENV}, check=True
    )
    return module
