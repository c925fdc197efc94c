"""The folders and files of a local cluster."""

import json
from pathlib import Path

from ...agent.system.files import write_whole
from ...agent.wire.rpc import UNIX, Client

CLUSTERS = "clusters"
"""The subfolder of the state folder with the homes of local clusters."""

MACHINE = "machine"
"""The key of the machine's id in `Places.identity`."""

_USUAL_UMASK = 0o022
"""Where the kernel does not report the umask of a process: Linux before 4.7."""


class Places:
    """The folders and files of one cluster; reading a path creates nothing."""

    def __init__(self, home: str) -> None:
        self.home = Path(home)
        self.tasks = self.home / "tasks"
        self.record = self.home / "record"
        self.train = self.home / "train"
        self.environments = self.home / "environments"
        """A file for each run: what its programs inherit of the shell of its `up`."""
        self.secrets = self.home / "secrets"
        self.token = self.home / "token"
        self.identity = self.home / "cluster.json"
        """The cluster's reference, and the machine that it is on: it is discovered by its folder or its processes alone."""
        self.config = self.home / "supervisord.conf"
        self.programs = self.home / "conf.d"
        self.supervisor_socket = self.home / "supervisor.sock"
        """Sockets are beside what they give access to: a folder such as /tmp is cleaned, and may differ between two logins."""
        self.supervisor_pid = self.home / "supervisord.pid"
        self.supervisor_lock = self.home / "supervisord.lock"
        """Locked by the supervisord as long as it lives."""
        self.controller_socket = self.home / "controller.sock"
        self.lock = self.home.parent.parent / "locks" / f"{self.home.name}.lock"
        """Locked by who changes the supervisord; outside the home, which a deletion removes under this lock."""

    def agent(self, version: str) -> Path:
        """The agent's application, one file for each version: running tasks continue with the version they started with."""
        return self.home / f"agent-{version}.pyz"

    @property
    def current_token(self) -> str:
        """The cluster's token, as its file has it; empty where there is none."""
        return self.token.read_text() if self.token.exists() else ""

    def controller(self, seconds: float, token: str = "") -> Client:
        """Calls of the controller, each of which may take so many seconds; by default with the current token."""
        return Client(f"{UNIX}{self.controller_socket}", token or self.current_token, seconds)

    def environment(self, run: str) -> Path:
        """What the programs of a run inherit."""
        return self.environments / f"{run}.json"

    def task(self, hostname: str) -> Path:
        """The folder of one task."""
        return self.tasks / hostname


def machine_id() -> str:
    """The id of this machine (https://www.freedesktop.org/software/systemd/man/latest/machine-id.html); empty for none."""
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def other_machine(places: Places) -> str:
    """The id of the machine that the cluster is on, if that is another one: two machines may share a home folder. Else empty."""
    try:
        machine = str(json.loads(places.identity.read_text(encoding="utf-8")).get(MACHINE, ""))
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return machine if machine != machine_id() else ""


def user_umask() -> int:
    """The umask of this process. `os.umask` would change it for a moment, also for the other threads."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), _USUAL_UMASK)


def write_private(path: Path, text: str) -> None:
    """Write a file that only the user can read. A crash of the machine does not leave it empty."""
    write_whole(path, text, mode=0o600, sync=True, sync_name=False)
