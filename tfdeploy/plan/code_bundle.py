"""Makes one archive of a folder of code. Its name is a hash of its content."""

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from ..errors import BundleError
from ..units import counted, text_of_size

MOST_BYTES = 100 * 1024 * 1024
"""A folder of code larger than this is refused: data belongs into `data_dir`."""

MOST_FILES = 10_000

EXCLUDED = (
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
    ".DS_Store",
    "Pulumi.yaml",
    "Pulumi.*.yaml",
    ".pulumi/",
    "*.log",
    "nohup.out",
    "*.sw[op]",
    "*~",
)
"""Patterns of files that are not shipped, as in .gitignore. The user's .gitignore and .tfdeployignore add to them. The last ones are
written while the code stays the same: `pulumi up > up.log` must not start another run."""

CREDENTIALS = (
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh/",
    ".aws/",
    ".azure/",
    ".gcloud/",
    ".gnupg/",
    ".kube/",
    "kubeconfig",
    ".docker/config.json",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    "credentials.json",
    "application_default_credentials.json",
    "client_secret*.json",
    "*service-account*.json",
    "*service_account*.json",
)
"""Patterns of files that often have keys or passwords in them. They are not shipped either, and each is listed in the preview, because
a program may need one; a line with `!` in .tfdeployignore includes it."""

_IGNORE_FILES = (".gitignore", ".tfdeployignore")
_MOST_NAMED = 10
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ShippedFile(NamedTuple):
    """One file of a bundle."""

    content: bytes
    executable: bool


@dataclass(frozen=True)
class Bundle:
    """The files of a code folder that are shipped; `name` is a hash of their content."""

    folder: Path
    files: tuple[str, ...]
    size: int
    name: str
    credentials: tuple[str, ...] = ()
    """Files and folders that are not shipped because of `CREDENTIALS` alone."""
    shipped: Mapping[str, ShippedFile] = field(default_factory=dict, repr=False, compare=False)
    """The files by name, as they were when the hash was made; empty unless they were asked for."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for the preview and for the update."""
        if not self.credentials:
            return ()
        names = ", ".join(self.credentials[:_MOST_NAMED])
        names += f" and {len(self.credentials) - _MOST_NAMED} more" if len(self.credentials) > _MOST_NAMED else ""
        remedy = f'If the program needs one, add a line such as "!{self.credentials[0]}" to .tfdeployignore'
        return (f"code: not shipped, because keys and passwords have such names: {names}. {remedy}",)

    def __str__(self) -> str:
        return f"{counted(len(self.files), 'file')}, {text_of_size(self.size)}"


def collect(where: str, folder: Path, without: Sequence[Path] = (), with_content: bool = False) -> Bundle:
    """The bundle of a folder; `without` are paths in it that are excluded. `with_content` keeps the content of the files, so that the
    archive has what was hashed although the files change.

    Raises:
        BundleError: the folder is missing, empty or too large, or has a link to a place outside; `where` begins the message.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise BundleError(f"{where}: code", f"{folder} {what}", "Name a folder, relative to the Pulumi program's.")
    root = folder.resolve()
    walk = _Walk(where, root, {path.resolve() for path in without})
    sizes: dict[str, int] = {}
    total = 0
    digest = hashlib.sha256()
    shipped: dict[str, ShippedFile] = {}
    for path in walk.files(root, _specs_above(where, root), frozenset({root})):
        name = path.relative_to(root).as_posix()
        sizes[name] = path.stat().st_size
        total += sizes[name]
        if total > MOST_BYTES or len(sizes) > MOST_FILES:
            raise _too_large(where, folder, sizes)
        file = ShippedFile(_read(where, path), _executable(path))
        for part in (_name(where, name), bytes([file.executable]), file.content):
            digest.update(len(part).to_bytes(8, "big") + part)
        if with_content:
            shipped[name] = file
    if not sizes:
        remedy = "Check .gitignore, also of the folders above; or leave out `code`."
        raise BundleError(f"{where}: code", f"{folder} has no file that is shipped", remedy)
    return Bundle(folder, tuple(sizes), total, digest.hexdigest()[:16], tuple(walk.credentials), shipped)


def _too_large(where: str, folder: Path, sizes: Mapping[str, int]) -> BundleError:
    limit = f"more than {MOST_FILES} files or {text_of_size(MOST_BYTES)}"
    largest = max(sizes, key=lambda name: sizes[name])
    remedy = f"List what is not code in .tfdeployignore. The largest file so far is {largest} ({text_of_size(sizes[largest])})."
    return BundleError(f"{where}: code", f"{folder} has {limit}", remedy)


def changed_files(bundle: Bundle, earlier: bytes) -> str:
    """How the files of a bundle differ from an earlier archive: `train.py changed, new.py added`; of many the first ones.

    Raises:
        OSError, zipfile.BadZipFile: a file or the archive cannot be read.
    """
    with zipfile.ZipFile(io.BytesIO(earlier)) as source:
        before = {item.filename: (item.CRC, bool(item.external_attr >> 16 & 0o100)) for item in source.infolist()}
    paths = {name: bundle.folder / name for name in bundle.files}
    after = {name: (zlib.crc32(path.read_bytes()), _executable(path)) for name, path in paths.items()}
    changes = [
        f"{name} {'added' if name not in before else 'removed' if name not in after else 'changed'}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    more = [f"{len(changes) - _MOST_NAMED} more"] if len(changes) > _MOST_NAMED else []
    return ", ".join([*changes[:_MOST_NAMED], *more])


def archive(bundle: Bundle) -> bytes:
    """The bundle as a ZIP, the same bytes for the same content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as target:
        for name in bundle.files:
            path = bundle.folder / name
            file = bundle.shipped.get(name) or ShippedFile(path.read_bytes(), _executable(path))
            item = zipfile.ZipInfo(name, _EPOCH)
            item.compress_type = zipfile.ZIP_DEFLATED
            item.external_attr = (0o755 if file.executable else 0o644) << 16
            target.writestr(item, file.content)
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
        remedy = "Make it readable, or list it in .tfdeployignore."
        raise BundleError(f"{where}: code", f"{path} cannot be read ({error.strerror})", remedy) from None


def is_ignored(folder: Path, path: Path) -> bool:
    """Whether a file below a folder of code is not shipped because of its name, or of that of a folder above it."""
    root = folder.resolve()
    specs = _specs_above(str(root), root)
    between = [parent for parent in reversed(path.parents) if parent == root or root in parent.parents]
    for parent in between:
        if parent != root and _ignored(parent, True, specs):
            return True
        specs += _specs_in(str(root), parent)
    return _ignored(path, False, specs)


Specs = tuple[tuple[Path, GitIgnoreSpec], ...]


def _specs_above(where: str, root: Path) -> Specs:
    """The ignore rules that apply to the folder: tfdeploy's, of which `CREDENTIALS` are the first, then those of the Git
    repository that contains it."""
    specs: Specs = tuple((root, GitIgnoreSpec.from_lines(patterns)) for patterns in (CREDENTIALS, EXCLUDED))
    above = [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
    if above:
        between = [folder for folder in reversed(root.parents) if folder == above[0] or above[0] in folder.parents]
        for folder in between:
            specs += _specs_in(where, folder)
    return specs


def _specs_in(where: str, folder: Path) -> Specs:
    files = [folder / name for name in _IGNORE_FILES if (folder / name).is_file()]
    return tuple((folder, _spec(where, path)) for path in files)


def _spec(where: str, path: Path) -> GitIgnoreSpec:
    lines = _read(where, path).decode("utf-8", "surrogateescape").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise BundleError(f"{where}: code", f"{path} cannot be parsed ({error})", "Correct that line.") from None


def _ignored(path: Path, is_folder: bool, specs: Specs) -> bool:
    """Whether a path is ignored: the last rule that matches decides, and those of the innermost folder are last."""
    ignored = False
    for base, spec in specs:
        if base not in path.parents:
            continue
        include = spec.check_file(path.relative_to(base).as_posix() + "/" * is_folder).include
        ignored = ignored if include is None else include
    return ignored


class _Walk:
    """Finds the files that are shipped, and collects the names of those that are not because they may be credentials."""

    def __init__(self, where: str, root: Path, without: set[Path]) -> None:
        self._where, self._root, self._without = where, root, without
        self.credentials: list[str] = []

    def files(self, folder: Path, specs: Specs, above: frozenset[Path]) -> Iterator[Path]:
        """The files below a folder, with the ignore rules of the folders above; `above` are these folders."""
        where = self._where
        specs += _specs_in(where, folder)
        for path in _items(where, folder):
            target = Path(os.path.realpath(path))
            is_folder = path.is_dir()
            if target in self._without or self._is_ignored(path, is_folder, specs):
                continue
            if path.is_symlink():
                _refuse_link(where, path, target, self._root, above)
                if self._is_ignored(target, is_folder, specs):
                    continue
            if is_folder:
                yield from self.files(path, specs, above | {target})
            elif path.is_file():
                yield path
            else:
                wrong = f"{path} is not a file or folder"
                raise BundleError(f"{where}: code", wrong, "Remove it, or list it in .tfdeployignore.")

    def _is_ignored(self, path: Path, is_folder: bool, specs: Specs) -> bool:
        if not _ignored(path, is_folder, specs):
            return False
        name = path.relative_to(self._root).as_posix() + "/" * is_folder
        if not _ignored(path, is_folder, specs[1:]) and name not in self.credentials:
            self.credentials.append(name)
        return True


def _items(where: str, folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        remedy = "Make it readable, or list it in .tfdeployignore."
        raise BundleError(f"{where}: code", f"{folder} cannot be read ({error.strerror})", remedy) from None


def _refuse_link(where: str, path: Path, target: Path, root: Path, above: frozenset[Path]) -> None:
    if target in above:
        raise BundleError(f"{where}: code", f"{path} is a link to a folder that contains it", "Remove it.")
    if root not in target.parents:
        wrong = f"{path} is a link to {target}, which is outside of that folder"
        raise BundleError(f"{where}: code", wrong, "Replace it by a copy.")
