"""Clusters found without the registry: by the labels, tags and folders of what they are made of."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ..backends.base import Found, search
from ..backends.folders import state_folder
from ..outline import Outline
from ..registry import Entry
from .at_once import at_once
from .settings import places, settings

_SECONDS = 10.0
"""How long a backend may take to answer that is only asked because the registry knows nothing."""

Place = tuple[str, str]
"""A backend, and where."""


def labelled(project: str, stack: str, file: Path) -> list[Entry]:
    """The clusters of a project, and of a stack where one is given, that are found where its settings say.

    A backend whose packages are missing, or that does not answer soon, is passed over.
    """
    asked = list(places(settings(file, stack)).items())
    return [
        Entry(one.cluster, str(file.parent), Outline(tasks=()), begun=one.since)
        for one in everywhere(asked, _SECONDS)[0]
        if one.cluster["project"] == project and stack in ("", one.cluster["stack"]) and at_home(one)
    ]


def everywhere(asked: Sequence[Place], seconds: float) -> tuple[list[Found], Mapping[Place, Exception]]:
    """What is found at each of these places, and why some could not be asked."""
    answers = at_once({one: partial(search, *one) for one in asked}, seconds)
    found = [item for answer in answers.values() if not isinstance(answer, Exception) for item in answer]
    return found, {one: answer for one, answer in answers.items() if isinstance(answer, Exception)}


def at_home(found: Found) -> bool:
    """Whether a cluster is of this state folder, where it is a folder's at all."""
    cluster = found.cluster
    return cluster["backend"] != "local" or Path(cluster["home"]).parent == state_folder() / "clusters"
