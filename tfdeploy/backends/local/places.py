"""Where a local cluster keeps what is its own."""

import hashlib
import os
from pathlib import Path

from ..folders import runtime_root


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

    @property
    def known_token(self) -> str:
        """The cluster's token, as it stands here; empty where there is none."""
        return self.token.read_text() if self.token.exists() else ""

    def task(self, hostname: str) -> Path:
        """The folder of one task."""
        return self.tasks / hostname


def write_private(path: Path, text: str) -> None:
    """Write a file that only the user can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
