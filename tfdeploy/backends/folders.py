"""Where the user's own state folder keeps what is known of clusters."""

import datetime
import os
from pathlib import Path

from ..errors import BackendError


def state_folder() -> Path:
    """The user's state folder for tfdeploy: `$XDG_STATE_HOME/tfdeploy`, by default `~/.local/state/tfdeploy`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tfdeploy"


def cache_folder() -> Path:
    """The user's cache folder for tfdeploy: `$XDG_CACHE_HOME/tfdeploy`, by default `~/.cache/tfdeploy`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy"


def pulumi_home() -> Path:
    """Where Pulumi keeps what is the user's: `$PULUMI_HOME`, by default `~/.pulumi`."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def cluster_folder(project: str, stack: str, name: str) -> str:
    """What the folder of a cluster is called, among those of other clusters."""
    return f"{project}.{stack}.{name}"


def absolute(given: str, program: str) -> str:
    """A folder that the user gives, as an absolute path; a relative one begins at `program`. A URL, and none, stay so."""
    return given if not given or "://" in given else str((Path(program) / Path(given).expanduser()).absolute())


def put_by(home: Path, *parts: Path) -> str:
    """Move what a cluster leaves (`parts`, in its folder `home`) to where nothing replaces it; where to, or "" for nothing."""
    worth = [path for path in parts if path.exists() and any(path.iterdir())]
    if not worth:
        return ""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    # The state folder that this home lies in, whatever the environment says today.
    kept = home.parent.parent / "kept" / home.name / moment
    kept.mkdir(parents=True)
    for path in worth:
        path.rename(kept / path.name)
    return str(kept)


def put(path: Path, text: str) -> None:
    """Write a file whole or not at all: others read it meanwhile."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)


def runtime_root() -> Path:
    """Where sockets stand: the path of one has at most 107 characters. Not in $TMPDIR, which another shell may have set
    to something else: every call must find the cluster that stands."""
    return Path("/tmp") / f"tfdeploy-{os.getuid()}"


def make_private(folder: Path) -> None:
    """Make a folder that only the user can enter.

    Raises:
        BackendError: it is there already and belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or folder.is_symlink():
        raise BackendError(f"{folder} belongs to another user (uid {found.st_uid}). Remove it.")
    folder.chmod(0o700)
