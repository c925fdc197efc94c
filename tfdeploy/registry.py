"""The clusters that this user has created: one file for each in the user's state folder.

A file is written when an update begins, so that a cluster is listed while its first `pulumi up` still runs. It remains after
`destroy`. It does not have the state of the cluster, which is observed.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from .agent.model.json_data import JsonData
from .agent.system.files import write_whole
from .backends.base import ClusterRef
from .errors import SpecError
from .paths import (
    RECORDS_FOLDER,
    cluster_folder,
    cluster_state,
    make_private,
    pulumi_home,
    read_json,
    set_aside_at,
    state_folder,
)
from .report.expected_state import ExpectedState
from .spec.backends import BACKENDS, is_this_computer


@dataclass(frozen=True)
class Entry(JsonData):
    """One cluster."""

    cluster: ClusterRef
    folder: str
    """Where its Pulumi program was run."""
    expected: ExpectedState
    options: Mapping[str, str] = field(default_factory=dict)
    """The arguments as the user wrote them, without secrets."""
    versions: Mapping[str, str] = field(default_factory=dict)
    begun: float = 0.0
    """When the last update began."""
    ended: float = 0.0
    """When it was destroyed, in seconds since 1970; 0 if it was not."""
    login: str = ""
    """Where Pulumi stored its stack; empty if that is not known."""
    organization: str = ""
    """The organization of that stack; empty if it is not known."""
    created: float = 0.0
    """When its first update began; 0 if that is not known."""

    @property
    def title(self) -> str:
        """Which cluster it is, for people: `project/stack/name`."""
        return title_of(self.cluster)

    @property
    def stack_key(self) -> tuple[str, ...]:
        """Which resource of which stack it is: clusters with the same key are one after the other, each with an id."""
        return (self.login, self.organization, self.title)


def title_of(cluster: ClusterRef) -> str:
    """A cluster as `project/stack/name`."""
    return "/".join((cluster["project"], cluster["stack"], cluster["name"]))


def login() -> str:
    """Where Pulumi stores stacks now, as a URL; empty if the user is not logged in."""
    try:
        current = json.loads((pulumi_home() / "credentials.json").read_text(encoding="utf-8")).get("current", "")
    except (OSError, ValueError, AttributeError, RecursionError):
        current = ""
    return os.environ.get("PULUMI_BACKEND_URL") or str(current)


def folder() -> Path:
    """The folder of the files."""
    return state_folder() / "registry"


def write_for_update(entry: Entry) -> None:
    """Store the entry when an update begins. While its run moves, the entry of the former place stays until the run is submitted at the
    new one: the command shows the cluster where the run is."""
    before = stored(entry.cluster)
    if before is None or before.ended or before.cluster["backend"] == entry.cluster["backend"]:
        write(entry)
    else:
        _store(_moving_path(entry.cluster), replace(entry, created=before.created))


def confirm_move(cluster: ClusterRef) -> None:
    """The run was submitted at the new place."""
    with suppress(FileNotFoundError):
        _moving_path(cluster).replace(path_of(cluster))


def _moving_path(cluster: ClusterRef) -> Path:
    return folder() / f".{cluster_folder(cluster)}.moving"


def path_of(cluster: ClusterRef) -> Path:
    """The file of one cluster."""
    return folder() / f"{cluster_folder(cluster)}.json"


def write(entry: Entry) -> None:
    """Store an entry. `created` of an earlier one remains."""
    _store(path_of(entry.cluster), replace(entry, created=entry.created or latest(entry).created or entry.begun))


def _store(path: Path, entry: Entry) -> None:
    make_private(folder())
    write_whole(path, json.dumps(entry.to_dict(), indent=1), mode=0o600, sync=True, sync_name=False)


def read(path: Path) -> Entry:
    """The entry in one file.

    Raises:
        OSError: the file does not exist.
        SpecError: it is damaged, or of another version.
    """
    return read_json(path, _entry)


def _entry(data: Any) -> Entry:
    missing = ClusterRef.__required_keys__ - set(data["cluster"])
    if missing:
        raise KeyError(*missing)
    return Entry.from_dict(data)


def find(project: str, stack: str, name: str) -> Entry | None:
    """The entry with this project, stack and name that was updated last; None where there is none."""
    words = {"project": project, "stack": stack, "name": name}
    return next((entry for entry in entries() if words.items() <= entry.cluster.items()), None)


def stored(cluster: ClusterRef) -> Entry | None:
    """The entry of a cluster; None if it has none that can be read."""
    try:
        return read(path_of(cluster))
    except (OSError, SpecError):
        return None


def latest(entry: Entry) -> Entry:
    """The entry as it is stored now; the same entry if it cannot be read."""
    return stored(entry.cluster) or entry


def entries() -> list[Entry]:
    """All entries, the latest update first. A file that cannot be read is skipped with a warning."""
    readable = []
    for path in sorted(folder().glob("[!.]*.json")) if folder().exists() else ():
        try:
            readable.append(read(path))
        except SpecError as error:
            _warn(str(error))
        except OSError:
            continue
    return sorted(readable, key=lambda entry: entry.begun, reverse=True)


@cache
def _warn(text: str) -> None:
    """Print a warning, once in a process."""
    import logging

    logging.getLogger(__name__).warning("Warning: %s", text)


def is_elsewhere(cluster: ClusterRef) -> bool:
    """Whether the run of the cluster has moved to another backend, which has its record."""
    entry = stored(cluster)
    return entry is not None and entry.cluster["backend"] != cluster["backend"]


def mark_destroyed(cluster: ClusterRef) -> None:
    """Store that a cluster was destroyed, if it has an entry. One that has moved to another backend exists there."""
    entry = stored(cluster)
    if entry is not None and not is_elsewhere(cluster):
        write(replace(entry, ended=time.time()))


def present_record(entry: Entry) -> Path:
    """Where the record of a cluster that exists is on this computer; on other backends than `local`, its copy."""
    cluster = entry.cluster
    is_local = is_this_computer(cluster["backend"])
    return (Path(cluster["home"]) if is_local else state_folder() / cluster_state(cluster)) / "record"


def latest_record(entry: Entry) -> Path | None:
    """The newest of `stored_records`; None if there is none."""
    return next(iter(stored_records(entry)), None)


def stored_records(entry: Entry) -> list[Path]:
    """The records that were stored each time this cluster, or an earlier one of its stack, was destroyed; newest first."""
    return [archive / "record" for archive in _archives(entry) if (archive / "record").exists()]


def _archives(entry: Entry) -> list[Path]:
    """The folders that `destroy` has created for this cluster and for earlier ones of its stack; newest first."""
    folders = {cluster_folder(other.cluster) for other in (entry, *entries()) if other.stack_key == entry.stack_key}
    archives = [path for folder in folders for path in (state_folder() / RECORDS_FOLDER / folder).glob("*")]
    return sorted(archives, key=lambda archive: archive.name, reverse=True)


def expired_archives(entry: Entry, retention: float, now: float, in_use: Sequence[str]) -> list[Path]:
    """The folders with records and checkpoints that `destroy` stored more than `retention` seconds ago, of clusters of the same stack
    that were destroyed.

    Whatever its age, the newest record of the stack stays, and so do its newest checkpoints, what a cluster has that was not
    destroyed, and folders that have one of the folders `in_use` in them.
    """
    archives = [archive for archive in _archives(entry) if _stored_at(archive)]
    used = {
        folder
        for path in in_use
        if path.startswith("/")
        for folder in (Path(path).resolve(), *Path(path).resolve().parents)
    }
    existing = {cluster_folder(other.cluster) for other in (entry, *entries()) if other is entry or not other.ended}
    newest = {next((archive for archive in archives if any(archive.glob(part))), None) for part in _PARTS}
    return [
        archive
        for archive in archives
        if now - _stored_at(archive) > retention
        and archive not in newest
        and archive.parent.name not in existing
        and archive.resolve() not in used
    ]


_PARTS = ("record", "train", "train/*/*", "record/runs/*/artifacts/*")
"""What `destroy` stores of a cluster. A run that has failed at once leaves empty folders: an earlier one has the newest checkpoint."""


def _stored_at(archive: Path) -> float:
    """When `destroy` stored a folder, in seconds since 1970; 0 where tfdeploy did not create it."""
    try:
        return set_aside_at(archive)
    except ValueError:
        return 0.0


PACKAGES = (
    "pulumi-tfdeploy",
    "pulumi",
    "tensorflow",
    "tensorflow-cpu",
    "tensorboard",
    *(package for entry in BACKENDS.values() for package in entry.packages),
)


def versions() -> dict[str, str]:
    """Name to version, of Python and of the installed packages among `PACKAGES`."""
    import platform  # only an update and `doctor` need these
    from importlib.metadata import PackageNotFoundError, version

    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
