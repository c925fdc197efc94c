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
from .quantities import counted, text_of_size

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
        return f"{counted(len(self.files), 'file')}, {text_of_size(self.size)}"


def collect(where: str, folder: Path, without: Sequence[Path] = ()) -> Bundle:
    """The bundle of a folder; `without` are paths in it that are left out.

    Raises:
        BundleError: the folder is missing, empty or too big, or has a link that leads out; `where` begins the message.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "is not there"
        raise BundleError(f"{where}: code", f"{folder} {what}", "Name a folder, relative to the Pulumi program's.")
    root = folder.resolve()
    skipped = {path.resolve() for path in without}
    files: list[str] = []
    total = 0
    digest = hashlib.sha256()
    for path in _walk(where, root, root, _specs_above(where, root), skipped, frozenset({root})):
        files.append(path.relative_to(root).as_posix())
        total += path.stat().st_size
        if total > MOST_BYTES or len(files) > MOST_FILES:
            limit = f"more than {MOST_FILES} files or {text_of_size(MOST_BYTES)}"
            raise BundleError(f"{where}: code", f"{folder} holds {limit}", "Name what is no code in .tfdeployignore.")
        for part in (_name(where, files[-1]), bytes([_executable(path)]), _read(where, path)):
            digest.update(len(part).to_bytes(8, "big") + part)
    if not files:
        remedy = "Mind .gitignore, also of the folders above; or leave `code` out."
        raise BundleError(f"{where}: code", f"{folder} has no file that is shipped", remedy)
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


def _name(where: str, name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise BundleError(f"{where}: code", f"the name of {name!r} is not in UTF-8", "Rename the file.") from None


def _read(where: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "Mend it, or name it in .tfdeployignore."
        raise BundleError(f"{where}: code", f"{path} cannot be read ({error.strerror})", remedy) from None


Specs = tuple[tuple[Path, GitIgnoreSpec], ...]


def _specs_above(where: str, root: Path) -> Specs:
    """The rules that hold for the folder: our own, then those of the Git repository that it lies in."""
    specs: Specs = ((root, GitIgnoreSpec.from_lines(LEFT_OUT)),)
    above = [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
    if above:
        between = [folder for folder in reversed(root.parents) if folder == above[0] or above[0] in folder.parents]
        for folder in between:
            specs += _specs_in(where, folder)
    return specs


def _specs_in(where: str, folder: Path) -> Specs:
    found = [folder / name for name in _IGNORE_FILES if (folder / name).is_file()]
    return tuple((folder, _spec(where, path)) for path in found)


def _spec(where: str, path: Path) -> GitIgnoreSpec:
    lines = _read(where, path).decode("utf-8", "surrogateescape").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise BundleError(f"{where}: code", f"{path} cannot be understood ({error})", "Mend that line.") from None


def _ignored(path: Path, is_folder: bool, specs: Specs) -> bool:
    """The last rule that speaks of a path decides, the innermost file being the last."""
    verdict = False
    for base, spec in specs:
        if base not in path.parents:
            continue
        said = spec.check_file(path.relative_to(base).as_posix() + "/" * is_folder).include
        verdict = verdict if said is None else said
    return verdict


def _walk(
    where: str, root: Path, folder: Path, specs: Specs, without: set[Path], above: frozenset[Path]
) -> Iterator[Path]:
    specs += _specs_in(where, folder)
    for path in _items(where, folder):
        target = Path(os.path.realpath(path))
        is_folder = path.is_dir()
        if target in without or _ignored(path, is_folder, specs):
            continue
        if path.is_symlink():
            _refuse_link(where, path, target, root, above)
            if _ignored(target, is_folder, specs):
                continue
        if is_folder:
            yield from _walk(where, root, path, specs, without, above | {target})
        elif path.is_file():
            yield path
        else:
            raise BundleError(f"{where}: code", f"{path} is no file", "Remove it, or name it in .tfdeployignore.")


def _items(where: str, folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        remedy = "Mend it, or name it in .tfdeployignore."
        raise BundleError(f"{where}: code", f"{folder} cannot be read ({error.strerror})", remedy) from None


def _refuse_link(where: str, path: Path, target: Path, root: Path, above: frozenset[Path]) -> None:
    if target in above:
        raise BundleError(f"{where}: code", f"{path} is a link to a folder that it stands in", "Remove it.")
    if root not in target.parents:
        wrong = f"{path} is a link that leads out, to {target}"
        raise BundleError(f"{where}: code", wrong, "Copy what it leads to.")
