"""The clusters that this user has made, whoever looks for them: one file for each in the user's state folder.

It is written when an update begins, so a cluster is found while its first `pulumi up` still runs, and stays after `destroy`.
It says nothing of how a cluster is: that is looked at.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .backends.base import Cluster
from .backends.folders import cluster_folder, make_private, pulumi_home, put, state_folder
from .outline import Outline


@dataclass(frozen=True)
class Entry:
    """One cluster."""

    cluster: Cluster
    folder: str
    """Where its Pulumi program was run."""
    outline: Outline
    options: Mapping[str, str] = field(default_factory=dict)
    """The arguments as they were given, without secrets."""
    versions: Mapping[str, str] = field(default_factory=dict)
    begun: float = 0.0
    """When the last update began."""
    ended: float = 0.0
    """When it was destroyed, in seconds since 1970; 0 while it is not."""
    login: str = ""
    """Where Pulumi kept its stack; empty where that is not known."""
    organization: str = ""
    """Whose stack it is there; empty where that is not known."""

    @property
    def title(self) -> str:
        """Which cluster it is, for people: `project/stack/name`."""
        return "/".join((self.cluster["project"], self.cluster["stack"], self.cluster["name"]))


def login() -> str:
    """Where Pulumi keeps stacks now, as a URL; empty where nobody is logged in."""
    try:
        chosen = json.loads((pulumi_home() / "credentials.json").read_text()).get("current", "")
    except (OSError, ValueError, AttributeError):
        chosen = ""
    return os.environ.get("PULUMI_BACKEND_URL") or str(chosen)


def folder() -> Path:
    """Where the files are."""
    return state_folder() / "registry"


def path_of(cluster: Cluster) -> Path:
    """The file of one cluster."""
    return folder() / f"{cluster_folder(cluster['project'], cluster['stack'], cluster['name'])}.json"


def write(entry: Entry) -> None:
    """Keep what is known of a cluster."""
    make_private(state_folder())
    make_private(folder())
    put(path_of(entry.cluster), json.dumps(asdict(entry), indent=1))


def read(path: Path) -> Entry:
    """The cluster of one file.

    Raises:
        OSError, ValueError, KeyError, TypeError: there is none, or it is none of ours.
    """
    data: dict[str, Any] = json.loads(path.read_text())
    return Entry(**{**data, "outline": Outline.from_dict(data["outline"])})


def known(entry: Entry) -> Entry:
    """What the registry says of that cluster now; what was known where it says nothing."""
    try:
        return read(path_of(entry.cluster))
    except (OSError, ValueError, KeyError, TypeError):
        return entry


def entries() -> list[Entry]:
    """All that are known, those first whose update began last; what cannot be read is passed over."""
    found = []
    for path in folder().glob("[!.]*.json") if folder().exists() else ():
        try:
            found.append(read(path))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda entry: entry.begun, reverse=True)


def end(cluster: Cluster) -> None:
    """Say that a cluster was destroyed; nothing where it is not known here."""
    try:
        entry = read(path_of(cluster))
    except (OSError, ValueError, KeyError, TypeError):
        return
    write(replace(entry, ended=time.time()))


def kept(cluster: Cluster) -> Path | None:
    """The newest record that was put by when this cluster was destroyed; None where there is none."""
    return next(iter(all_kept(cluster)), None)


def all_kept(cluster: Cluster) -> list[Path]:
    """The records of this cluster's earlier lives, the newest first."""
    place = state_folder() / "kept" / cluster_folder(cluster["project"], cluster["stack"], cluster["name"])
    return sorted(place.glob("*/record"), reverse=True)
