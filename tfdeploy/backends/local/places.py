"""Where a local cluster keeps what is its own."""

import hashlib
import os
from pathlib import Path

from ...errors import BackendError


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
