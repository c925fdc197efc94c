"""A folder of code becomes one archive, named by its content."""

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from .errors import BundleError
from .quantities import text_of_size

MOST_BYTES = 100 * 1024 * 1024
"""A folder of code larger than this is refused: data belongs into `data_dir`."""

MOST_FILES = 10_000

LEFT_OUT = (
    ".git/",
    ".hg/",
    ".svn/",
    ".venv/",
    "venv/",
    "__pycache__/",
    "*.py[co]",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".ipynb_checkpoints/",
    "node_modules/",
    ".env",
    ".DS_Store",
    "Pulumi.yaml",
    "Pulumi.*.yaml",
    ".pulumi/",
)
"""What is never shipped, in the form of .gitignore; .gitignore and .tfdeployignore name more, or take back by `!`."""

_IGNORE_FILES = (".gitignore", ".tfdeployignore")
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    """The files of a code folder that are shipped, and the name that their content gives them."""

    folder: Path
    files: tuple[str, ...]
    size: int
    name: str

    def __str__(self) -> str:
        return f"{len(self.files)} files, {text_of_size(self.size)}"


def collect(where: str, folder: Path, without: Sequence[Path] = ()) -> Bundle:
    """The bundle of a folder; `without` are paths in it that are left out.

    Raises:
        BundleError: the folder is missing, too big, or has a link that leads out of it; `where` begins the message.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "is not there"
        raise BundleError(f"{where}: code", f"{folder} {what}", "Name a folder, relative to the Pulumi program's.")
    root = folder.resolve()
    skipped = {path.resolve() for path in without}
    files: list[str] = []
    total = 0
    digest = hashlib.sha256()
    for path in _walk(where, root, root, _specs_above(root), skipped, frozenset({root})):
        name = path.relative_to(root).as_posix()
        content = _read(where, path)
        total += len(content)
        files.append(name)
        if total > MOST_BYTES or len(files) > MOST_FILES:
            limit = f"more than {MOST_FILES} files or {text_of_size(MOST_BYTES)}"
            raise BundleError(f"{where}: code", f"{folder} holds {limit}", "Name what is no code in .tfdeployignore.")
        for part in (name.encode("utf-8", "surrogateescape"), bytes([_executable(path)]), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return Bundle(folder, tuple(files), total, digest.hexdigest()[:16])


def archive(bundle: Bundle) -> bytes:
    """The bundle as a ZIP, the same bytes for the same content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as target:
        for name in bundle.files:
            path = bundle.folder / name
            item = zipfile.ZipInfo(name, _EPOCH)
            item.compress_type = zipfile.ZIP_DEFLATED
            item.external_attr = (0o755 if _executable(path) else 0o644) << 16
            target.writestr(item, path.read_bytes())
    return buffer.getvalue()


def _executable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def _read(where: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "Mend it, or name it in .tfdeployignore."
        raise BundleError(f"{where}: code", f"{path} cannot be read ({error.strerror})", remedy) from None


Specs = tuple[tuple[Path, GitIgnoreSpec], ...]


def _specs_above(root: Path) -> Specs:
    """The rules that hold for the folder: our own, then those of the Git repository that it lies in."""
    specs: Specs = ((root, GitIgnoreSpec.from_lines(LEFT_OUT)),)
    above = [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
    if above:
        between = [folder for folder in reversed(root.parents) if folder == above[0] or above[0] in folder.parents]
        for folder in between:
            specs += _specs_in(folder)
    return specs


def _specs_in(folder: Path) -> Specs:
    found = [folder / name for name in _IGNORE_FILES if (folder / name).is_file()]
    return tuple((folder, GitIgnoreSpec.from_lines(path.read_text().splitlines())) for path in found)


def _ignored(path: Path, is_folder: bool, specs: Specs) -> bool:
    """The last rule that speaks of a path decides, the innermost file being the last."""
    verdict = False
    for base, spec in specs:
        said = spec.check_file(path.relative_to(base).as_posix() + "/" * is_folder).include
        verdict = verdict if said is None else said
    return verdict


def _walk(
    where: str, root: Path, folder: Path, specs: Specs, without: set[Path], above: frozenset[Path]
) -> Iterator[Path]:
    specs += _specs_in(folder)
    for item in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(item.path)
        is_folder = item.is_dir()
        target = path.resolve()
        if target in without or _ignored(path, is_folder, specs):
            continue
        if item.is_symlink() and root not in target.parents:
            raise BundleError(
                f"{where}: code", f"{path} is a link that leads out, to {target}", "Copy what it leads to."
            )
        if is_folder and target not in above:
            yield from _walk(where, root, path, specs, without, above | {target})
        elif item.is_file():
            yield path
        elif not is_folder:
            raise BundleError(f"{where}: code", f"{path} is no file", "Remove it, or name it in .tfdeployignore.")
