"""How a user gets at one task of a cluster of this computer: the contract is `backends.access.Access`."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

from ...agent.child import NOT_FOUND
from ...agent.enter import surroundings
from ...agent.protocol import UNIX, CallError, Client
from ...agent.record import Record
from ...agent.states import Job
from ...errors import BackendError
from ..access import Way, address_of, announce, forgotten, task_of, to_restart, until_back
from ..base import Cluster
from ..connecting import Direct
from .places import Places
from .supervisor import Supervisor

_SECONDS = 10.0
_MARGIN = 30.0
_COME_SECONDS = 60.0


class LocalAccess:
    """Processes of this computer."""

    def means(self, cluster: Cluster, hostname: str, anew: bool) -> str:
        """What it does to the task and its data."""
        job = _job(cluster)
        to_restart(job, cluster, hostname)
        kept = job.run["train_dir"] if job else ""
        told = [f"{hostname} starts again on this computer; the other tasks go on.", _lost(cluster, hostname)]
        if anew:
            told.append("It keeps nothing else for itself, so this is what `tfdeploy restart` does too.")
        return " ".join([*told, f"What is in train_dir ({kept}) stays.", *forgotten(job, hostname)])

    def restart(self, cluster: Cluster, hostname: str) -> None:
        """Start the launcher again, in a new working directory."""
        self._again(cluster, hostname, "restarted")

    def replace(self, cluster: Cluster, hostname: str) -> None:
        """The same: there is nothing else that is the task's alone."""
        self._again(cluster, hostname, "replaced")

    def _again(self, cluster: Cluster, hostname: str, word: str) -> None:
        places, job = Places(cluster["home"]), _job(cluster)
        before = to_restart(job, cluster, hostname)
        with _keeper(places) as keeper:
            announce(keeper, hostname, word)
        forget = partial(shutil.rmtree, _work(places, hostname), ignore_errors=True)
        grace = float(job.run["grace"]) if job else 0.0
        Supervisor(places).restart(hostname, grace + _MARGIN, forget)
        until_back(partial(_job, cluster), before, _COME_SECONDS)

    def execute(self, cluster: Cluster, hostname: str, command: Sequence[str]) -> int:
        """Run it with the working directory and the environment of the task's process."""
        task = task_of(_job(cluster), cluster, hostname)
        place = surroundings(Places(cluster["home"]).task(hostname), os.environ)
        if place is None:
            raise BackendError(
                f"{hostname} has no process now: it is {task.state}. `tfdeploy logs {hostname}` has its output."
            )
        where, env = place
        # The command shares our terminal and gets its signals; what it does with them is its own matter.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            code = subprocess.run([*command], cwd=where, env=env, check=False).returncode
        except OSError as error:
            print(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}", file=sys.stderr)
            return NOT_FOUND
        finally:
            signal.signal(signal.SIGINT, before)
        return code if code >= 0 else 128 - code

    def ssh(self, cluster: Cluster, machine: str) -> list[str]:
        """There is no other machine."""
        raise BackendError("the cluster stands on this computer. `tfdeploy exec HOSTNAME -- sh` leads to a task.")

    def way(self, cluster: Cluster, hostname: str) -> Way:
        """A plain connection."""
        host, port = address_of(_job(cluster), cluster, hostname)
        return Way(host, port, partial(Direct, host, port), direct=True)


def _lost(cluster: Cluster, hostname: str) -> str:
    return f"What it has written into its working directory is lost ({_work(Places(cluster['home']), hostname)})."


def _work(places: Places, hostname: str) -> str:
    return str(places.task(hostname) / "work")


def _keeper(places: Places) -> Client:
    return Client(f"{UNIX}{places.keeper_socket}", places.known_token, _SECONDS)


def _job(cluster: Cluster) -> Job | None:
    """The present job, from the record where the keeper does not answer."""
    places = Places(cluster["home"])
    try:
        with _keeper(places) as keeper:
            data = keeper.json("POST", "/look", {"log_lines": 0, "metrics": {}})["job"]
        return Job.from_dict(data) if data else None
    except (OSError, CallError):
        return Record(places.record).current()


ACCESS = LocalAccess()
