"""The part of requirements.lock that a set-up needs: the packages that its extras require, and their dependencies."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==")
_VIA = re.compile(r"^ +# (?:via )? *([A-Za-z0-9][A-Za-z0-9._-]*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
BUILD = ("pip", "uv")
"""Needed by every set-up, beside the build backend. Pulumi asks pip at every preview what is installed; uv installs."""


def roots(pyproject: str, extras: Iterable[str]) -> set[str]:
    """The names of the packages that pyproject.toml itself requires for these extras.

    Raises:
        KeyError: there is no such extra.
    """
    read: Mapping[str, Any] = tomllib.loads(pyproject)
    optional = read["project"]["optional-dependencies"]
    required = [*read["project"]["dependencies"], *read["build-system"]["requires"], *BUILD]
    for extra in extras:
        required += optional[extra]
    return {_normal(_NAME.match(text)[0]) for text in required}  # type: ignore[index]


def part(lock: str, names: Iterable[str]) -> str:
    """The entries of the lock for these packages and for their dependencies, with their hashes.

    Each entry's comment lists the packages that require it. A package that is left out by mistake makes pip fail: with hashes it
    does not install packages that are not named.

    Raises:
        KeyError: the lock has no entry for one of the names.
    """
    entries = _entries(lock)
    requires: dict[str, set[str]] = {name: set() for name in entries}
    for name, texts in entries.items():
        for parent in (parent for text in texts for parent in _parents(text)):
            requires.setdefault(parent, set()).add(name)
    wanted: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        if name not in entries:
            raise KeyError(name)
        wanted.add(name)
        waiting |= requires[name] - wanted
    return "".join(text for name, texts in entries.items() if name in wanted for text in texts)


def _entries(lock: str) -> dict[str, list[str]]:
    """The lock's text by package; a package may have several entries, for different platforms."""
    entries: dict[str, list[str]] = {}
    texts: list[str] = []
    for line in lock.splitlines(keepends=True):
        if pin := _PIN.match(line):
            texts = entries.setdefault(_normal(pin[1]), [])
            texts.append("")
        if texts:
            texts[-1] += line
    return entries


def _parents(text: str) -> list[str]:
    """The packages that require this entry."""
    comments = (_VIA.match(line) for line in text.splitlines())
    return [_normal(match[1]) for match in comments if match and match[1] != "via"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
