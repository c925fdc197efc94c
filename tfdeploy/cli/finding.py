"""Which clusters a call is about: those of the stack of the program in this folder, whether Pulumi is busy with it or not."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import registry
from ..backends.folders import pulumi_home
from ..errors import NotFound
from ..registry import Entry
from .asking import Asked
from .labelled import labelled

_FILES = ("Pulumi.yaml", "Pulumi.yml")
_NAME = re.compile(r"^name:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


def one(asked: Asked) -> Entry:
    """The cluster that is asked about.

    Raises:
        NotFound: there is none, or more than one.
    """
    found = several(asked)
    if len(found) > 1:
        names = ", ".join(entry.cluster["name"] for entry in found)
        raise NotFound(f"this stack has several clusters: {names}. Choose one: --cluster {found[0].cluster['name']}.")
    return found[0]


def standing(asked: Asked) -> Entry:
    """The cluster that is asked about, of which something is to be done.

    Raises:
        NotFound: there is none, or it was destroyed.
    """
    found = one(asked)
    if found.ended:
        raise NotFound(
            f"{found.title} was destroyed. `pulumi up` makes it again; `tfdeploy show` has what is kept of it."
        )
    return found


def several(asked: Asked) -> list[Entry]:
    """The clusters of the stack, by name; those that were destroyed only where there is no other.

    Raises:
        NotFound: there is none.
    """
    project, file = project_of(asked.cwd)
    stack = asked.stack.rpartition("/")[2] or _selected(project, file)
    known = [entry for entry in registry.entries() if entry.cluster["project"] == project]
    here = _here(asked, project, stack, known)
    if not here:
        known += labelled(project, stack, file)
        here = _here(asked, project, stack, known)
    if not here:
        raise NotFound(_nothing(project, stack, asked.cluster, known))
    return sorted([entry for entry in here if not entry.ended] or here, key=lambda entry: entry.cluster["name"])


def _here(asked: Asked, project: str, stack: str, known: Sequence[Entry]) -> list[Entry]:
    """Those of the stack that is meant."""
    stack = stack or _only_stack(project, known)
    here = [entry for entry in known if entry.cluster["stack"] == stack]
    return [entry for entry in here if asked.cluster in ("", entry.cluster["name"])]


def stack_here(asked: Asked) -> tuple[Path | None, str]:
    """The file of the project in this folder, and the stack that is meant; nothing where there is none."""
    try:
        project, file = project_of(asked.cwd)
    except NotFound:
        return None, ""
    return file, asked.stack.rpartition("/")[2] or _selected(project, file)


def project_of(folder: Path) -> tuple[str, Path]:
    """The project whose program stands in a folder, or in one above it, and its file.

    Raises:
        NotFound: there is none.
    """
    start = folder.expanduser().absolute()
    for place in (start, *start.parents):
        for file in (place / name for name in _FILES):
            if file.exists() and (found := _NAME.search(file.read_text())):
                return found[1], file
    else_ = _elsewhere(registry.entries()) or "Give the program's folder: --cwd FOLDER."
    raise NotFound(f"no Pulumi.yaml in {start} or above. {else_}")


def _selected(project: str, file: Path) -> str:
    """The stack that `pulumi stack select` has chosen, from where Pulumi keeps it; nothing where none is."""
    digest = hashlib.sha1(str(file).encode(), usedforsecurity=False).hexdigest()
    known = _json(pulumi_home() / "workspaces" / f"{project}-{digest}-workspace.json")
    chosen = known.get("stacks", {}).get(registry.login()) or known.get("stack", "")
    return str(chosen).rpartition("/")[2]


def _json(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found


def _only_stack(project: str, known: Sequence[Entry]) -> str:
    stacks = list(dict.fromkeys(entry.cluster["stack"] for entry in known))
    if len(stacks) > 1:
        raise NotFound(
            f"no stack of {project} is selected. Give one: --stack {stacks[0]} (there are {', '.join(stacks)})."
        )
    return stacks[0] if stacks else ""


def _nothing(project: str, stack: str, cluster: str, known: Sequence[Entry]) -> str:
    which = f"{project}/{stack}" if stack else project
    if cluster:
        return f"{which} has no cluster {cluster!r}. {_elsewhere(known)}".rstrip()
    return f"{which} has no cluster yet. `pulumi up` makes it. {_elsewhere(known)}".rstrip()


def _elsewhere(known: Sequence[Entry]) -> str:
    """What else there is, and how to get there."""
    alive = [entry for entry in known if not entry.ended]
    if not alive:
        return ""
    first = alive[0]
    names = ", ".join(entry.title for entry in alive[:5])
    return f"There are {names}; `--cwd {first.folder} --stack {first.cluster['stack']}` leads to the first."
