"""Access to a task of a cluster on this computer: the contract is `backends.base.TaskAccess`."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import psutil

from ...agent.launch.exec import program_context
from ...agent.model.run_state import RunState
from ...agent.record.record import Record, ViewRequest
from ...agent.system.parent_death import NOT_FOUND
from ...agent.wire.rpc import CallError
from ...errors import BackendError
from .. import controller_calls
from ..base import CONTROLLER, ClusterRef, Route, TaskAccess, TaskUsage
from ..connection import Connection, LocalFiles, direct
from ..task_access import address_of, announce, lost_in_memory, task_of, to_copy_from, to_restart, wait_until_running
from .paths import Places
from .supervisor import Supervisor

if TYPE_CHECKING:
    from ...agent.model.task_dump import TaskDump

_SECONDS = 10.0
_MARGIN = 30.0
_START_SECONDS = 60.0

_INTERVAL_SECONDS = 0.5
"""The processors' use is measured over this time."""


class LocalAccess(TaskAccess):
    """Processes of this computer."""

    def restart_effect(self, cluster: ClusterRef, hostname: str, replace: bool) -> str:
        """The effect of a restart or a replacement on the task and its data, in sentences."""
        run_state = _current_run(cluster)
        to_restart(run_state, cluster, hostname)
        train_dir = run_state.spec.train_dir if run_state else ""
        sentences = [
            f"{hostname} starts again on this computer; the other tasks continue.",
            f"What it has written into its working directory is lost ({_work(Places(cluster['home']), hostname)}).",
        ]
        if replace:
            sentences.append("On this backend, `tfdeploy restart` has the same effect.")
        sentences.append(f"What is in train_dir ({train_dir}) stays.")
        return " ".join([*sentences, *lost_in_memory(run_state, hostname)])

    def restart(self, cluster: ClusterRef, hostname: str, replace: bool = False) -> None:
        """Start the launcher again, in a new working directory. The task has no resources besides these, so `replace` has no further
        effect."""
        places, run_state = Places(cluster["home"]), _current_run(cluster)
        before = to_restart(run_state, cluster, hostname)
        with places.controller(_SECONDS) as controller:
            announce(controller, hostname, "replaced" if replace else "restarted")
        delete_work = partial(shutil.rmtree, _work(places, hostname), ignore_errors=True)
        grace = float(run_state.spec.grace) if run_state else 0.0
        Supervisor(places).restart(hostname, grace + _MARGIN, delete_work)
        wait_until_running(partial(_current_run, cluster), before, _START_SECONDS)

    def lost_effect(self, cluster: ClusterRef, machine: str) -> str:
        """Refused: there is one machine."""
        raise BackendError("all tasks run on this computer. `tfdeploy restart --lost` restores those that are lost.")

    def stop_training(self, cluster: ClusterRef, time_limit: float = 0.0) -> None:
        """Through the controller's socket."""
        with Places(cluster["home"]).controller(_SECONDS) as controller:
            controller_calls.stop_training(controller, cluster["name"], time_limit)

    def dumps(self, cluster: ClusterRef, hostnames: Collection[str]) -> "Mapping[str, TaskDump]":
        """Through the controller's socket."""
        with Places(cluster["home"]).controller(_SECONDS) as controller:
            return controller_calls.take_dumps(controller, cluster["name"], hostnames)

    def execute(self, cluster: ClusterRef, hostname: str, command: Sequence[str]) -> int:
        """Run it with the working directory and the environment of the task's process."""
        task = task_of(_current_run(cluster), cluster, hostname)
        context = program_context(Places(cluster["home"]).task(hostname), os.environ)
        if context is None:
            raise BackendError(
                f"{hostname} has no process now: it is {task.state}. `tfdeploy logs {hostname}` has its output."
            )
        folder, env = context
        # The command has the same terminal and gets its signals: it decides what Ctrl-C does.
        previous = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            code = subprocess.run([*command], cwd=folder, env=env, check=False).returncode
        except OSError as error:
            print(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}", file=sys.stderr)
            return NOT_FOUND
        finally:
            signal.signal(signal.SIGINT, previous)
        return code if code >= 0 else 128 - code

    def ssh(self, cluster: ClusterRef, machine: str) -> list[str]:
        """There is no other machine."""
        raise BackendError("the cluster is on this computer. `tfdeploy exec HOSTNAME -- sh` opens a shell in a task.")

    def route(self, cluster: ClusterRef, hostname: str, port: int = 0) -> Route:
        """A plain connection."""
        host, own_port = address_of(_current_run(cluster), cluster, hostname)
        port = port or own_port
        return Route(host, port, partial(direct, host, port), direct=True)

    def files(self, cluster: ClusterRef, hostname: str, base: str, path: str) -> Connection:
        """From this computer."""
        to_copy_from(_current_run(cluster), cluster, hostname)
        return LocalFiles(Places(cluster["home"]).task(hostname), base, path)

    def usage(self, cluster: ClusterRef) -> Mapping[str, TaskUsage]:
        """From the kernel's counters of the processes."""
        return task_usage(Supervisor(Places(cluster["home"])))


def _work(places: Places, hostname: str) -> str:
    return str(places.task(hostname) / "work")


def _current_run(cluster: ClusterRef) -> RunState | None:
    """The current run, from the record where the controller does not respond."""
    places = Places(cluster["home"])
    try:
        with places.controller(_SECONDS) as controller:
            return controller_calls.view(controller, ViewRequest()).run_state
    except (OSError, CallError):
        return Record(places.record).current()


def task_usage(supervisor: Supervisor) -> Mapping[str, TaskUsage]:
    """The use of each task with a process. A task is its launcher with all processes that descend from it.

    Raises:
        Unreachable: the supervisord does not respond.
    """
    pids = {name: info["pid"] for name, info in supervisor.programs().items() if info["pid"] and name != CONTROLLER}
    before, begun = {name: _cpu_seconds(_family(pid)) for name, pid in pids.items()}, time.monotonic()
    time.sleep(_INTERVAL_SECONDS)
    families = {name: _family(pid) for name, pid in pids.items()}
    seconds = time.monotonic() - begun
    return {
        name: TaskUsage(max(0.0, _cpu_seconds(family) - before[name]) / seconds, sum(map(_memory, family)))
        for name, family in families.items()
        if family
    }


def _family(pid: int) -> Sequence[psutil.Process]:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _memory(process: psutil.Process) -> int:
    """The proportional set size, in which a shared page counts once; the resident size where it cannot be read."""
    with suppress(psutil.Error):
        info = process.memory_full_info()
        return int(getattr(info, "pss", info.rss))
    return 0
