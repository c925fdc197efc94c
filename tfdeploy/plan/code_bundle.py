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

from ..errors import BundleError, EmptyBundle
from ..units import counted, text_of_size
from .default_exclusions import looks_secret
from .ignore_rules import CREDENTIAL, AllRules, deciding, is_included, rules_above, rules_in

MOST_BYTES = 100 * 1024 * 1024
"""A folder of code larger than this is refused: data belongs into `data_dir`."""

MOST_FILES = 10_000

_MOST_NAMED = 10
_EXCLUDED = "it is the Pulumi program, its data, or what this command writes"
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ShippedFile(NamedTuple):
    """One file of a bundle."""

    content: bytes
    executable: bool


@dataclass(frozen=True)
class Bundle:
    """The files of a code folder that are shipped; `name` is a hash of their content."""

    folder: Path
    name: str
    shipped: Mapping[str, ShippedFile] = field(repr=False)
    """The files by name, as they were when the hash was made."""
    credentials: tuple[str, ...] = ()
    """Files and folders that are not shipped because of `default_exclusions.CREDENTIALS` alone."""
    without: tuple[str, ...] = ()
    """Files and folders that are not shipped only because the caller excludes them."""
    suspects: tuple[str, ...] = ()
    """Files that are shipped and look as if they had keys or passwords in them."""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(self.shipped)

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for the preview and for the update."""
        if not self.credentials:
            return ()
        remedy = f'If the program needs one, add a line such as "!{self.credentials[0]}" to .tfdeployignore'
        return (
            f"code: not shipped, because keys and passwords have such names: {_listed(self.credentials)}. {remedy}",
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the preview and for the update."""
        if not self.suspects:
            return ()
        wrong = f"code: shipped to every task, and may have keys or passwords: {_listed(self.suspects)}"
        remedy = "Give them to the program by `secrets`, and list the file in .tfdeployignore"
        return (f'{wrong}. {remedy}; if it has none, a line such as "!{self.suspects[0]}" there ends this warning',)

    def __str__(self) -> str:
        size = sum(len(file.content) for file in self.shipped.values())
        return f"{counted(len(self.shipped), 'file')}, {text_of_size(size)}"


def collect(where: str, folder: Path, without: Sequence[Path] = ()) -> Bundle:
    """The bundle of a folder; `without` are paths in it that are excluded. Each file is read once: the archive has what was hashed,
    although the files change.

    Raises:
        BundleError: the folder is missing, empty or too large, or has a link to a place outside; `where` begins the message.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise BundleError(f"{where}: code", f"{folder} {what}", "Name a folder, relative to the Pulumi program's.")
    root = folder.resolve()
    if root == root.parent:
        remedy = "Name the folder of the program."
        raise BundleError(f"{where}: code", f"{root} is the root of the file system", remedy)
    walk = _Walk(where, root, {path.resolve() for path in without})
    paths = _within_limits(where, folder, root, walk)
    if not paths:
        raise EmptyBundle(f"{where}: code", *_nothing_shipped(folder, walk))
    digest = hashlib.sha256()
    shipped = {name: _shipped_file(where, path) for name, path in paths.items()}
    suspects = []
    for name, file in shipped.items():
        # Not the mode: on file systems of Windows all files have 777.
        for part in (_name(where, name), bytes([_is_program(file.content)]), file.content):
            digest.update(len(part).to_bytes(8, "big") + part)
        if looks_secret(name, file.content) and name not in walk.included:
            suspects.append(name)
    credentials, excluded = walk.names(CREDENTIAL), walk.names(_EXCLUDED)
    return Bundle(folder, digest.hexdigest()[:16], shipped, credentials, excluded, tuple(suspects))


def _within_limits(where: str, folder: Path, root: Path, walk: "_Walk") -> dict[str, Path]:
    """The files that are shipped, by name. None of them is read yet: a folder that is too large is refused while it is listed."""
    paths: dict[str, Path] = {}
    sizes: dict[str, int] = {}
    total = 0
    for path in walk.files(root, rules_above(where, root), frozenset({root})):
        name = path.relative_to(root).as_posix()
        paths[name], sizes[name] = path, path.stat().st_size
        total += sizes[name]
        if total > MOST_BYTES or len(sizes) > MOST_FILES:
            raise _too_large(where, folder, sizes)
    return paths


def _too_large(where: str, folder: Path, sizes: Mapping[str, int]) -> BundleError:
    limit = f"at most {MOST_FILES} files and {text_of_size(MOST_BYTES)} are shipped"
    size = f"{counted(len(sizes), 'file')} and {text_of_size(sum(sizes.values()))} so far"
    largest = max(sizes, key=lambda name: sizes[name])
    remedy = (
        f"Name the folder of the program alone, or list what is not code in .tfdeployignore; data belongs into `data_dir`. "
        f"The largest file so far is {largest} ({text_of_size(sizes[largest])})."
    )
    home = ", your home folder," if folder.resolve() == Path.home() else ""
    return BundleError(f"{where}: code", f"{folder}{home} has {size}, and {limit}", remedy)


def _nothing_shipped(folder: Path, walk: "_Walk") -> tuple[str, str]:
    """What is wrong with a folder of which nothing is shipped, and what to do."""
    remedy = "Put the program there, name another folder, or leave out `code`."
    if not walk.left_out:
        return f"{folder} has no file", remedy
    reasons = _listed([f"{name} ({reason})" for name, reason in walk.left_out.items()])
    return f"{folder} has no file that is shipped. Not shipped: {reasons}", remedy


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def changed_files(bundle: Bundle, earlier: bytes) -> str:
    """How the files of a bundle differ from an earlier archive: `train.py changed, new.py added`; of many the first ones.

    Raises:
        zipfile.BadZipFile: the archive cannot be read.
    """
    with zipfile.ZipFile(io.BytesIO(earlier)) as source:
        before = {item.filename: (item.CRC, bool(item.external_attr >> 16 & 0o100)) for item in source.infolist()}
    after = {name: (zlib.crc32(file.content), file.executable) for name, file in bundle.shipped.items()}
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
        for name, file in bundle.shipped.items():
            item = zipfile.ZipInfo(name, _EPOCH)
            item.compress_type = zipfile.ZIP_DEFLATED
            item.external_attr = (0o755 if file.executable else 0o644) << 16
            target.writestr(item, file.content)
    return buffer.getvalue()


def _shipped_file(where: str, path: Path) -> ShippedFile:
    content = _read(where, path)
    return ShippedFile(content, _is_program(content) or bool(path.stat().st_mode & 0o100))


def _is_program(content: bytes) -> bool:
    """Whether the kernel can start it: a script that names its interpreter, or a binary."""
    return content.startswith((b"#!", b"\x7fELF"))


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


class _Walk:
    """Finds the files that are shipped, and collects the names of those that are not."""

    def __init__(self, where: str, root: Path, without: set[Path]) -> None:
        self._where, self._root, self._without = where, root, without
        self.left_out: dict[str, str] = {}
        """Name to reason."""
        self.included: set[str] = set()
        """Files that a line with `!` of the user's includes."""

    def names(self, reason: str) -> tuple[str, ...]:
        """The files and folders that are not shipped for this reason."""
        return tuple(name for name, found in self.left_out.items() if found == reason)

    def files(self, folder: Path, rules: AllRules, above: frozenset[Path]) -> Iterator[Path]:
        """The files below a folder, with the rules of the folders above; `above` are these folders."""
        where = self._where
        rules += rules_in(where, folder)
        for path in _items(where, folder):
            target = Path(os.path.realpath(path))
            is_folder = path.is_dir()
            if self._is_ignored(path, is_folder, rules):
                continue
            if target in self._without:
                self._leave_out(path, is_folder, _EXCLUDED)
                continue
            if path.is_symlink():
                _refuse_link(where, path, target, self._root, above)
                if self._is_ignored(target, is_folder, rules):
                    continue
            if is_folder:
                yield from self.files(path, rules, above | {target})
            elif path.is_file():
                if is_included(path, rules):
                    self.included.add(path.relative_to(self._root).as_posix())
                yield path
            elif path.is_symlink():
                what = "a link to something that does not exist"
                raise BundleError(f"{where}: code", f"{path} is {what}", "Remove it, or list it in .tfdeployignore.")
            else:
                self._leave_out(path, is_folder, "it is a socket, a pipe or a device")

    def _is_ignored(self, path: Path, is_folder: bool, rules: AllRules) -> bool:
        """Whether a path is not shipped. What the user's rules exclude too is not listed as a credential."""
        if deciding(path, is_folder, rules) is None:
            return False
        other = deciding(path, is_folder, rules[1:])
        self._leave_out(path, is_folder, other.reason if other else CREDENTIAL)
        return True

    def _leave_out(self, path: Path, is_folder: bool, reason: str) -> None:
        self.left_out.setdefault(path.relative_to(self._root).as_posix() + "/" * is_folder, reason)


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
