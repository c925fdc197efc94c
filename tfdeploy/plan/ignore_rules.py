"""The rules of .gitignore, .git/info/exclude and .tfdeployignore, read as Git reads them."""

import codecs
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from ..errors import BundleError
from .default_exclusions import CREDENTIALS, EXCLUDED

_IGNORE_FILES = (".gitignore", ".tfdeployignore")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

CREDENTIAL = "it may be a key or a password"
OWN = "it is not code"


class Rules(NamedTuple):
    """The patterns of one file, which are relative to `base`."""

    base: Path
    spec: GitIgnoreSpec
    reason: str
    """Why a path is not shipped that these patterns match."""


AllRules = tuple[Rules, ...]


def rules_above(where: str, root: Path) -> AllRules:
    """The rules that apply to a folder: tfdeploy's, of which `CREDENTIALS` are the first, then those of the Git repository that
    contains it.

    Raises:
        BundleError: a file cannot be read; `where` begins the message.
    """
    rules: AllRules = (
        Rules(root, GitIgnoreSpec.from_lines(CREDENTIALS), CREDENTIAL),
        Rules(root, GitIgnoreSpec.from_lines(EXCLUDED), OWN),
    )
    above = [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
    if above:
        repository = above[0]
        exclude = _git_folder(repository) / "info" / "exclude"
        rules += _read(where, exclude, repository) if exclude.is_file() else ()
        for folder in [
            parent for parent in reversed(root.parents) if parent == repository or repository in parent.parents
        ]:
            rules += rules_in(where, folder)
    return rules


def rules_in(where: str, folder: Path) -> AllRules:
    """The rules of the files in one folder.

    Raises:
        BundleError: a file cannot be read.
    """
    files = [folder / name for name in _IGNORE_FILES if (folder / name).is_file()]
    return tuple(rules for path in files for rules in _read(where, path, folder))


def deciding(path: Path, is_folder: bool, rules: AllRules) -> Rules | None:
    """The rules because of which a path is not shipped; None where it is."""
    matched = _last_match(path, is_folder, rules)
    return matched[0] if matched and matched[1] else None


def is_included(path: Path, rules: AllRules) -> bool:
    """Whether a line with `!` of the user's includes a file."""
    matched = _last_match(path, False, [each for each in rules if each.reason not in (CREDENTIAL, OWN)])
    return matched is not None and not matched[1]


def _last_match(path: Path, is_folder: bool, rules: Sequence[Rules]) -> tuple[Rules, bool] | None:
    """The last rules with a pattern that matches, which decide, and whether that excludes the path. Those of the innermost folder are
    last."""
    matched = None
    for each in rules:
        if each.base in path.parents:
            include = each.spec.check_file(path.relative_to(each.base).as_posix() + "/" * is_folder).include
            matched = matched if include is None else (each, include)
    return matched


def _git_folder(repository: Path) -> Path:
    """The folder that all work trees of a repository share: `.git` is a file in a work tree and in a submodule."""
    git = repository / ".git"
    try:
        if git.is_file():
            git = repository / git.read_text().removeprefix("gitdir:").strip()
        common = git / "commondir"
        return git / common.read_text().strip() if common.is_file() else git
    except (OSError, ValueError):
        return git


def _read(where: str, path: Path, base: Path) -> AllRules:
    try:
        content = path.read_bytes()
    except OSError as error:
        remedy = "Make it readable, or remove it."
        raise BundleError(f"{where}: code", f"{path} cannot be read ({error.strerror})", remedy) from None
    if content.startswith(_UTF_16):
        raise BundleError(f"{where}: code", f"{path} is in UTF-16, which Git does not read", "Save it in UTF-8.")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        spec = GitIgnoreSpec.from_lines(text.split("\n"))
    except ValueError as error:
        raise BundleError(f"{where}: code", f"{path} cannot be parsed ({error})", "Correct that line.") from None
    return (Rules(base, spec, f"{os.path.relpath(path, base)} names it"),)
