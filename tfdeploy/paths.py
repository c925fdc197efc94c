"""The folders of the user that tfdeploy reads and writes."""

import datetime
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from .errors import DISK_FULL, BackendError, SpecError

T = TypeVar("T")

_MOMENT = "%Y%m%dT%H%M%S.%fZ"

RECORDS_FOLDER = "retained"
"""The subfolder of the state folder with the records of destroyed clusters."""

NO_ID = "new"
"""In place of the id of a cluster that does not exist yet: shorter than any id, so that no cluster has it."""


def state_folder() -> Path:
    """The user's state folder for tfdeploy: `$XDG_STATE_HOME/tfdeploy`, by default `~/.local/state/tfdeploy`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tfdeploy"


def cache_folder() -> Path:
    """The user's cache folder for tfdeploy: `$XDG_CACHE_HOME/tfdeploy`, by default `~/.cache/tfdeploy`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy"


def pulumi_home() -> Path:
    """The user's folder of Pulumi: `$PULUMI_HOME`, by default `~/.pulumi`."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def cluster_folder(cluster: Mapping[str, object]) -> str:
    """The name of a cluster's folders, from its `ClusterRef`: its own name for people, and its id, which no other cluster has."""
    return f"{cluster['name']}-{cluster['id'] or NO_ID}"


def cluster_state(cluster: Mapping[str, object]) -> Path:
    """The folder of a cluster, relative to the state folder, on backends that have no other place for it."""
    return Path(str(cluster["backend"])) / cluster_folder(cluster)


def absolute(folder: str, program_folder: str) -> str:
    """A folder from the user as an absolute path; a relative one begins at `program_folder`. A URL and "" are unchanged."""
    if not folder or "://" in folder:
        return folder
    return str((Path(program_folder) / Path(folder).expanduser()).absolute())


def set_aside(home: Path, *parts: Path) -> str:
    """Move these parts of the folder `home` of a destroyed cluster to a folder that no later cluster replaces; that folder, or
    "" where there is nothing to move."""
    non_empty = [path for path in parts if path.exists() and any(path.iterdir())]
    if not non_empty:
        return ""
    moment = datetime.datetime.now(datetime.UTC).strftime(_MOMENT)
    # In the state folder of this home: the environment may name another one today.
    archive = home.parent.parent / RECORDS_FOLDER / home.name / moment
    archive.mkdir(parents=True)
    for path in non_empty:
        path.rename(archive / path.name)
    return str(archive)


def set_aside_at(archive: Path) -> float:
    """When `set_aside` created a folder, in seconds since 1970, by its name.

    Raises:
        ValueError: it has another name.
    """
    return datetime.datetime.strptime(archive.name, _MOMENT).replace(tzinfo=datetime.UTC).timestamp()


def read_json(path: Path, parse: Callable[[Any], T]) -> T:
    """What `parse` makes of the JSON in a file of the state folder.

    Raises:
        OSError: the file does not exist.
        SpecError: it is damaged, or another version of tfdeploy wrote it.
    """
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        wrong = "cannot be read, because it is damaged or another version of tfdeploy wrote it"
        remedy = "Destroy the cluster with that version, or delete the file."
        raise SpecError(str(path), wrong, remedy) from None


def runtime_root() -> Path:
    """The folder of all sockets: the path of a socket has at most 107 characters. Not in $TMPDIR, which may differ between two
    shells: every call must find the same sockets."""
    return Path("/tmp") / f"tfdeploy-{os.getuid()}"


def make_private(folder: Path) -> None:
    """Create a folder that only the user can enter; if it is inside the state folder, that one too.

    Raises:
        BackendError: the folder cannot be created, or belongs to another user.
        OSError: the disk is full.
    """
    if state_folder() in folder.parents:
        make_private(state_folder())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        remedy = "Set HOME, or XDG_STATE_HOME, to a folder that you can write to."
        raise BackendError(f"the folder {folder} cannot be created: {error.strerror}. {remedy}") from None
    status = folder.lstat()
    if status.st_uid != os.getuid() or folder.is_symlink():
        raise BackendError(f"{folder} belongs to another user (uid {status.st_uid}). Remove it.")
    folder.chmod(0o700)


def output_files() -> list[Path]:
    """The files that the output of this process, or of one that it was started by, is written to: `pulumi up > FILE`. None where the
    system has no `/proc`."""
    files = []
    pid = os.getpid()
    while pid > 1:
        for stream in ("1", "2"):
            with suppress(OSError):
                path = Path(f"/proc/{pid}/fd/{stream}").resolve(strict=True)
                files += [path] if path.is_file() else []
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return list(dict.fromkeys(files))
