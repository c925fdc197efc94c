"""What a `TaskRunner` does the same on every engine whose controller is a container: stop, move, remove and observe."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from ..agent.record.record import ViewRequest
from ..agent.run_state import RunState
from ..agent.transport.rpc import CallError
from ..errors import BackendError, SpecError, Unreachable
from . import controller_calls
from .base import CONTROLLER, ClusterRef, EngineTask, ObservedMachines, ObservedState, RunProps, TaskProps
from .controller_calls import RunReceiver
from .installation import installing
from .move import StoppedRun, not_stopped
from .record_copy import RecordCopy
from .record_view import observed_view

_STOP_MARGIN = 60.0


class ContainerController(RunReceiver, Protocol):
    """The controller in its container."""

    def current_run(self) -> RunState | None:
        """The current run; None where the controller has none, or does not respond."""

    def last_known_run(self) -> RunState | None:
        """The current run; from the copy of the record where the controller does not respond."""


@contextmanager
def engine_reason(observe: Callable[[], EngineTask | None]) -> Iterator[None]:
    """Errors have the engine's reason why a task, or the controller, does not run."""
    try:
        yield
    except BackendError as error:
        task = observe()
        reason = f" ({task.state}: {task.reason})" if task and task.reason else ""
        raise BackendError(f"{error}{reason}") from None


class ContainerRunner:
    """A part of `backends.base.TaskRunner`. An engine has the first five functions."""

    def controller(self, cluster: ClusterRef) -> ContainerController:
        """Calls of the controller."""
        raise NotImplementedError

    def engine_tasks(self, cluster: ClusterRef) -> Mapping[str, EngineTask]:
        """What the engine reports of each task, and of the controller."""
        raise NotImplementedError

    def hostnames(self, cluster: ClusterRef) -> Sequence[str]:
        """Whose containers the engine is to run: those of the tasks, and of the controller."""
        raise NotImplementedError

    def remove_tasks(self, cluster: ClusterRef, hostnames: Sequence[str], grace: float) -> None:
        """Remove tasks, and wait until their containers have ended; `grace` is that of their programs, in seconds."""
        raise NotImplementedError

    def observe_machines(self, cluster: ClusterRef, is_preview: bool) -> ObservedMachines:
        """The machines."""
        raise NotImplementedError

    def delete_task(self, props: TaskProps) -> None:
        """Stop and remove a task; if the engine is unreachable, `delete_all` reports that."""
        with suppress(Unreachable):
            self._remove(props["cluster"], [props["hostname"]], props["grace"])

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        with suppress(Unreachable):
            unlisted = [name for name in self.hostnames(cluster) if name not in (*hostnames, CONTROLLER)]
            if unlisted:
                self._remove(cluster, unlisted, self.grace(cluster))

    def _remove(self, cluster: ClusterRef, hostnames: Sequence[str], grace: float) -> None:
        with suppress(OSError, CallError):
            self.controller(cluster).json("POST", "/stop", {"hostnames": list(hostnames)})
        self.remove_tasks(cluster, hostnames, grace)

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and wait until all tasks have stopped."""
        with suppress(Unreachable):
            self.end_run(props["cluster"])

    def end_run(self, cluster: ClusterRef, to_move: bool = False) -> bool:
        """Stop the run, or stop it `to_move` it; whether all its tasks have stopped. It waits for them."""

        def has_ended() -> bool:
            return not any(task.alive for name, task in self.engine_tasks(cluster).items() if name != CONTROLLER)

        if CONTROLLER not in self.hostnames(cluster):
            return has_ended()
        seconds = self.grace(cluster) + _STOP_MARGIN
        return controller_calls.stop(self.controller(cluster), has_ended, seconds, to_move) or has_ended()

    def grace(self, cluster: ClusterRef) -> float:
        """How long programs of the current run have to end, in seconds."""
        run = self.controller(cluster).last_known_run()
        return float(run.spec.grace) if run else 0.0

    def stop_to_move(self, cluster: ClusterRef) -> StoppedRun:
        """Stop the run, and bring the copy of its record up to date."""
        record_copy, controller = RecordCopy(cluster), self.controller(cluster)
        with suppress(Unreachable):
            if not self.end_run(cluster, to_move=True):
                raise not_stopped(cluster)
        is_whole = record_copy.download(controller)
        return StoppedRun(record_copy.folder, is_whole and controller.current_run() is not None)

    def mark_moved(self, cluster: ClusterRef, to: str) -> None:
        """Store it in the record."""
        controller_calls.mark_moved(self.controller(cluster), to)

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """Ask the engine and the controller; read the copy of the record where the controller does not respond."""
        record_copy = RecordCopy(cluster)
        machines = self.observe_machines(cluster, is_preview)
        problems, engine = list(machines.problems), None
        if not problems:
            try:
                engine = self.engine_tasks(cluster)
            except (BackendError, SpecError) as error:
                problems.append(str(error))
        view, silent_since = observed_view(self.controller(cluster), record_copy, engine, query, is_preview, problems)
        controller = (engine or {}).get(CONTROLLER)
        if controller is not None and controller.reason:
            problems.append(f"the controller is {controller.state}: {controller.reason}")
        tasks = {name: task for name, task in engine.items() if name != CONTROLLER} if engine is not None else None
        return ObservedState(
            at=time.time(),
            view=view,
            controller_silent_since=silent_since,
            engine=tasks,
            record_folder=str(record_copy.folder),
            machines=machines,
            problems=problems,
            installing=installing(cluster, time.time()),
        )
