"""Where a local cluster keeps what is its own."""

import datetime
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...agent.record import Record
from ...errors import BackendError


def state_folder() -> Path:
    """The user's state folder for tfdeploy: `$XDG_STATE_HOME/tfdeploy`, by default `~/.local/state/tfdeploy`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tfdeploy"


def cache_folder() -> Path:
    """The user's cache folder for tfdeploy: `$XDG_CACHE_HOME/tfdeploy`, by default `~/.cache/tfdeploy`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tfdeploy"


class Places:
    """The folders and files of one cluster; nothing is made by asking for them."""

    def __init__(self, home: str) -> None:
        self.home = Path(home)
        self.tasks = self.home / "tasks"
        self.record = self.home / "record"
        self.train = self.home / "train"
        self.secrets = self.home / "secrets"
        self.token = self.home / "token"
        self.config = self.home / "supervisord.conf"
        self.programs = self.home / "conf.d"
        self.runtime = runtime_root() / hashlib.sha256(home.encode()).hexdigest()[:12]
        self.supervisor_socket = self.runtime / "supervisor.sock"
        self.keeper_socket = self.runtime / "keeper.sock"
        self.lock = runtime_root() / f"{self.runtime.name}.lock"

    def agent(self, version: str) -> Path:
        """The agent's application, one file for each version of it: those that run go on with their own."""
        return self.home / f"agent-{version}.pyz"

    def task(self, hostname: str) -> Path:
        """The folder of one task."""
        return self.tasks / hostname


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


def write_private(path: Path, text: str) -> None:
    """Write a file that only the user can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def put_by(places: Places) -> str:
    """Move record and checkpoints out of the cluster's home, and remove the rest of it; a sentence that says where to."""
    worth = [path for path in (places.record, places.train) if path.exists() and any(path.iterdir())]
    said = ""
    if worth:
        moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        # The state folder that this home lies in, whatever the environment says today.
        kept = places.home.parent.parent / "kept" / places.home.name / moment
        kept.mkdir(parents=True)
        for path in worth:
            path.rename(kept / path.name)
        said = f"the record and the checkpoints are kept in {kept}"
    shutil.rmtree(places.home, ignore_errors=True)
    return said


def train_dir(record: Record, run: Mapping[str, Any]) -> str:
    """The run's own folder below `train_dir`: one that the record knows stays, a new run never begins in a used one."""
    known = record.load(run["id"])
    if known is not None:
        return str(known.run["train_dir"])
    base = run["train_dir"].rstrip("/")
    resumed = record.load(run["resume_from"]) if run["resume_from"] else None
    if resumed is not None:
        return str(resumed.run["train_dir"])
    if run["resume_from"] or "://" in base:
        return f"{base}/{run['resume_from'] or run['id']}"
    number = 1
    folder = Path(base) / run["id"]
    while folder.exists() and any(folder.iterdir()):
        number += 1
        folder = Path(base) / f"{run['id']}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)
