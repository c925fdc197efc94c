"""What a `TaskAccess` does the same on every engine whose tasks are containers."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..agent.model.run_state import RunState
from ..errors import BackendError
from . import controller_calls
from .base import ClusterRef, Route
from .connection import Connection
from .container_layout import TASK_FOLDER
from .container_runner import STOP_MARGIN, ContainerRunner, engine_reason
from .task_access import (
    address_of,
    announce,
    lost_in_memory,
    require_task,
    task_of,
    to_copy_from,
    to_restart,
    wait_until_running,
)
from .terminal import CommandStream, attach, terminal_size_env
from .terminal import is_terminal as has_terminal

if TYPE_CHECKING:
    from ..agent.model.task_dump import TaskDump

Runner = TypeVar("Runner", bound=ContainerRunner[Any])


class ContainerAccess(Generic[Runner]):
    """A part of `backends.base.TaskAccess`. An engine has the functions that raise `NotImplementedError`."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def start_command(
        self, cluster: ClusterRef, hostname: str, words: Sequence[str], env: Mapping[str, str] = {}, tty: bool = False
    ) -> CommandStream:
        """Start a command of the agent in the container of a task."""
        raise NotImplementedError

    def relay(self, cluster: ClusterRef, host: str, port: int) -> Callable[[], Connection]:
        """What connects to a port of a task, from the controller's container."""
        raise NotImplementedError

    def refuse_restart(self, cluster: ClusterRef, hostname: str) -> None:
        """Refuse a restart after which the task could not start again."""
        raise NotImplementedError

    def effects(self, cluster: ClusterRef, hostname: str, train_dir: str, replace: bool) -> Sequence[str]:
        """What a restart does to a task and its data, in sentences."""
        raise NotImplementedError

    def start_again(self, cluster: ClusterRef, hostname: str, replace: bool) -> None:
        """Replace the container of a task, and with `replace` its own data."""
        raise NotImplementedError

    def known_run(self, cluster: ClusterRef) -> RunState | None:
        """The current run; from the copy of the record where the controller does not respond."""
        return self.runner.controller(cluster).last_known_run()

    def restart_effect(self, cluster: ClusterRef, hostname: str, replace: bool) -> str:
        """The effects on the task and its data."""
        run = self.known_run(cluster)
        to_restart(run, cluster, hostname)
        self.refuse_restart(cluster, hostname)
        effects = self.effects(cluster, hostname, run.spec.train_dir if run else "", replace)
        return " ".join([*effects, *lost_in_memory(run, hostname)])

    def restart(self, cluster: ClusterRef, hostname: str, replace: bool = False) -> None:
        """Replace its container, and wait until it runs."""
        controller = self.runner.controller(cluster)
        run = controller.last_known_run()
        before = to_restart(run, cluster, hostname)
        self.refuse_restart(cluster, hostname)
        announce(controller, hostname, "replaced" if replace else "restarted")
        self.start_again(cluster, hostname, replace)
        seconds = self.runner.stop_seconds(float(run.spec.grace) if run else 0.0) + STOP_MARGIN
        with engine_reason(lambda: self.runner.objects(cluster).tasks().get(hostname)):
            wait_until_running(controller.current_run, before, seconds)

    def stop_training(self, cluster: ClusterRef, time_limit: float = 0.0) -> None:
        """Through the controller's container."""
        controller_calls.stop_training(self.runner.controller(cluster), cluster["name"], time_limit)

    def dumps(self, cluster: ClusterRef, hostnames: Collection[str]) -> "Mapping[str, TaskDump]":
        """Through the controller's container."""
        return controller_calls.take_dumps(self.runner.controller(cluster), cluster["name"], hostnames)

    def execute(self, cluster: ClusterRef, hostname: str, command: Sequence[str]) -> int:
        """Run a command in the container, with the working directory and the environment of the task's program."""
        task_of(self.known_run(cluster), cluster, hostname)
        is_terminal = has_terminal()
        env = {"TERM": os.environ.get("TERM", "xterm"), **terminal_size_env()} if is_terminal else {}
        stream = self.start_command(cluster, hostname, ["exec", TASK_FOLDER, *command], env, is_terminal)
        try:
            return attach(stream)
        finally:
            stream.close()

    def files(self, cluster: ClusterRef, hostname: str, base: str, path: str) -> Connection:
        """From the task's container."""
        to_copy_from(self.known_run(cluster), cluster, hostname)
        return self.start_command(cluster, hostname, ["archive", TASK_FOLDER, base, path])

    def ssh(self, cluster: ClusterRef, machine: str) -> list[str]:
        """Not supported: the machines belong to the user."""
        raise BackendError(
            f"tfdeploy did not create {machine} and does not know how to connect to it by ssh. "
            "Use `tfdeploy exec HOSTNAME -- sh` for a shell in a task's container."
        )

    def route(self, cluster: ClusterRef, hostname: str, port: int = 0) -> Route:
        """Through the controller's container, which reaches all tasks."""
        host, own_port = address_of(self.known_run(cluster), cluster, hostname)
        port = port or own_port
        return Route(host, port, self.relay(cluster, host, port))

    def container(self, cluster: ClusterRef, hostname: str, kind: str) -> str:
        """The container of a task; `kind` is what the engine has for each task.

        Raises:
            BackendError: it has none that runs now.
        """
        tasks = self.runner.objects(cluster).tasks()
        require_task(tasks, cluster, hostname, kind)
        task = tasks[hostname]
        if not task.alive or not task.container:
            reason = f" ({task.reason})" if task.reason else ""
            raise BackendError(f"{hostname} does not have a container now: it is {task.state}{reason}.")
        return task.container
