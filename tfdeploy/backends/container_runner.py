"""What a `TaskRunner` does the same on every engine whose controller is a container."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ..agent.model.run_spec import RunSpec
from ..agent.model.run_state import FINAL, RUNNING, UNKNOWN, RunState, TaskState
from ..agent.record.record import ViewRequest
from ..agent.wire.rpc import CallError, Client
from ..errors import BackendError, SpecError, Unreachable
from . import controller_calls, lost_record
from .base import (
    CONTROLLER,
    ClusterRef,
    EngineTask,
    ObservedMachines,
    ObservedState,
    Retain,
    RunOutputs,
    RunProps,
    TaskOutputs,
    TaskProps,
)
from .move_checks import StoppedRun, not_stopped
from .record_copy import DELETE_UNREACHABLE, RecordCopy, RecordCopyBusy, observed_view, refuse_loss
from .requirements_status import installing
from .rolling_update import StartClock, TaskEngine, Turns, replace_task, wait_for_finish, wait_for_start

CONTROLLER_SECONDS = 600.0
"""How long the controller may take to start once its image is on the machine."""

STOP_MARGIN = 60.0
"""How long an engine may take to end a container beyond the time that its program has."""

_Defined = TypeVar("_Defined", contravariant=True)
Definition = TypeVar("Definition")


class ContainerEngine(TaskEngine[_Defined], Protocol[_Defined]):
    """What one cluster has on an engine."""

    def tasks(self) -> Mapping[str, EngineTask]:
        """The state of each task and of the controller, by hostname."""

    def start_ended(self, hostnames: Sequence[str]) -> None:
        """Start the tasks among these whose launcher has ended."""

    def runs_as_defined(self, desired: _Defined) -> bool:
        """Whether the controller runs with this definition."""


class ContainerController(Client):
    """Calls one cluster's controller; threads may share it. An engine has `call`."""

    def __init__(self, cluster: ClusterRef) -> None:
        super().__init__("", "")
        self.cluster = cluster
        self.title = f"the controller of {cluster['name']}"

    def json_bytes(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        """Make one call with a response in JSON."""
        try:
            return super().json_bytes(method, path, body)
        except (ValueError, RecursionError):
            raise Unreachable(f"{self.title} sent a response that is not JSON") from None

    def current_run(self) -> RunState | None:
        """The current run; None where the controller has none, or does not respond."""
        with suppress(OSError, CallError):
            return controller_calls.view(self, ViewRequest()).run_state
        return None

    def last_known_run(self) -> RunState | None:
        """The current run; from the copy of the record where the controller does not respond."""
        return self.current_run() or RecordCopy(self.cluster).record.current()


@contextmanager
def engine_reason(observe: Callable[[], EngineTask | None]) -> Iterator[None]:
    """Errors have the engine's reason why a task, or the controller, does not run."""
    try:
        yield
    except BackendError as error:
        task = observe()
        reason = f" ({task.state}: {task.reason})" if task and task.reason else ""
        raise BackendError(f"{error}{reason}") from None


def _has_ended(run: RunState, task: TaskState) -> bool:
    """Whether the task needs no launcher any more."""
    return run.result is not None or task.state in FINAL


class ContainerRunner(Generic[Definition]):
    """A part of `backends.base.TaskRunner`. An engine has the functions that raise `NotImplementedError`."""

    engine_title: ClassVar[str] = "engine"
    unreachable_remedy: ClassVar[str] = ""
    """What to do where the engine does not respond."""
    unreachable: ClassVar[tuple[type[Exception], ...]] = (Unreachable,)
    """The errors of an engine that does not respond."""

    def __init__(self) -> None:
        self._turns: dict[str, Turns] = {}

    def controller(self, cluster: ClusterRef) -> ContainerController:
        """Calls of the controller."""
        raise NotImplementedError

    def objects(self, cluster: ClusterRef) -> ContainerEngine[Definition]:
        """What the cluster has on the engine."""
        raise NotImplementedError

    def is_whole(self, cluster: ClusterRef, hostname: str) -> bool:
        """Whether the engine is to run the container of a task, or of the controller, and has all that it needs."""
        return hostname in self.objects(cluster).tasks()

    def missing(self, cluster: ClusterRef, hostnames: Sequence[str], engine: Mapping[str, EngineTask]) -> Sequence[str]:
        """What these tasks, and the controller, should have and do not, each as a noun with its article."""
        return [f"the service of {name}" for name in hostnames if name not in engine]

    def define_controller(self, props: RunProps) -> Definition:
        """What the controller's container is created from."""
        raise NotImplementedError

    def remove_tasks(self, cluster: ClusterRef, hostnames: Sequence[str], seconds: float) -> None:
        """Remove tasks, and wait until their containers have ended."""
        raise NotImplementedError

    def remove_unused(self, props: RunProps) -> None:
        """Remove what containers of earlier runs needed."""
        raise NotImplementedError

    def remove_all(self, cluster: ClusterRef, seconds: float, retain: Retain, runs: Sequence[RunState | None]) -> str:
        """Remove all that has the cluster's id, in so many seconds; what is retained. `runs` are those that were stored last."""
        raise NotImplementedError

    def stop_seconds(self, grace: float) -> float:
        """How long the engine waits before it kills a launcher, which gives its program `grace` seconds."""
        raise NotImplementedError

    def observe_machines(self, cluster: ClusterRef) -> ObservedMachines:
        """The machines."""
        raise NotImplementedError

    def update(
        self,
        props: TaskProps,
        desired: Definition,
        former: Callable[[], Definition],
        at_once: bool,
    ) -> TaskOutputs:
        """Give a task another definition: `at_once`, or in its turn of a rolling update while a run is active. `former` returns what it
        gets again if it does not start."""
        cluster, hostname = props["cluster"], props["hostname"]
        controller, objects = self.controller(cluster), self.objects(cluster)
        run = None if at_once else controller.current_run()
        at_once = at_once or (run is None and self._is_unreported(cluster))
        if at_once or (run is not None and run.result is not None):
            wait_for_finish(run, hostname, controller.current_run)
            objects.apply(desired)
        else:
            from ..spec.jobs import job_rank  # whoever only observes a cluster needs no spec

            needs_program = run is None or props["run"] in (run.spec.id, run.spec.content_id)
            replace = partial(replace_task, objects, desired, former(), hostname, controller.current_run, needs_program)
            turns = self._turns.setdefault(f"{cluster['home']} {cluster['id']}", Turns())
            turns.take((job_rank(props["job"]), props["index"]), hostname, replace)
        return {"created_at": controller_calls.now()}

    def _is_unreported(self, cluster: ClusterRef) -> bool:
        """Whether no controller runs, and none has had a run that is open: nothing reports that a task has started again, as after a
        wrong image."""
        task = self.objects(cluster).tasks().get(CONTROLLER)
        if task is not None and task.alive and task.state == RUNNING:
            return False
        former = RecordCopy(cluster).record.current()
        return former is None or former.result is not None

    def task_exists(self, props: TaskProps) -> bool:
        """Whether the engine has the task; if it is unreachable, assume that it has."""
        try:
            return self.is_whole(props["cluster"], props["hostname"])
        except Unreachable:
            return True

    def submit_run(self, props: RunProps) -> RunOutputs:
        """Create or update the controller, submit code and run, and start the launchers that have exited."""
        cluster = props["cluster"]
        with self.started_controller(props) as controller:
            if restored := lost_record.restore(controller, cluster, CONTROLLER_SECONDS):
                print(f"{cluster['name']}: {restored}.", flush=True)
            run = RunSpec.from_dict(props["run"])
            accepted = controller_calls.submit(controller, props, run, CONTROLLER_SECONDS)
        controller_calls.start_launchers(controller, accepted["at"], self.objects(cluster).start_ended)
        with suppress(RecordCopyBusy):  # the observation that follows reports it
            RecordCopy(cluster).update(controller)
        self.remove_unused(props)
        return {"submitted_at": controller_calls.now(), "train_dir": accepted["train_dir"]}

    @contextmanager
    def started_controller(self, props: RunProps) -> Iterator[ContainerController]:
        """Create or update the controller, and wait until it runs. Errors meanwhile have the engine's reason why it does not."""
        cluster, desired = props["cluster"], self.define_controller(props)
        objects, title = self.objects(cluster), f"the controller of {cluster['name']}"
        clock = StartClock(objects, CONTROLLER, title)
        objects.apply(desired)
        clock.begin(CONTROLLER_SECONDS, CONTROLLER_SECONDS)
        wait_for_start(clock, lambda: objects.runs_as_defined(desired))
        with engine_reason(lambda: objects.tasks().get(CONTROLLER)):
            yield self.controller(cluster)

    @contextmanager
    def responding_controller(self, props: RunProps) -> Iterator[ContainerController]:
        """Create or update the controller, and wait until it responds."""
        with self.started_controller(props) as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"], CONTROLLER_SECONDS)
            yield controller

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller exists and this is its run; if the engine is unreachable, assume both."""
        try:
            if not self.is_whole(props["cluster"], CONTROLLER):
                return False
        except Unreachable:
            return True
        run = self.controller(props["cluster"]).current_run()
        return run is not None and run.spec.id == props["run"]["id"]

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Remove all that has the cluster's id; retain the copy of the record, and checkpoints if requested."""
        record_copy = RecordCopy(cluster)
        former = record_copy.record.current()  # the controller has forgotten the tasks by now
        try:
            self.end_run(cluster)
            responds = record_copy.download(self.controller(cluster))
            refuse_loss(cluster, record_copy, retain, responds)
            seconds = self.stop_seconds(self.grace(cluster)) + STOP_MARGIN
            retained = self.remove_all(cluster, seconds, retain, [former, record_copy.record.current()])
        except self.unreachable as error:
            if os.environ.get(DELETE_UNREACHABLE) != "1":
                raise Unreachable(
                    f"{error}, so the objects of {cluster['name']} there cannot be removed. Restore the connection and run "
                    f"`pulumi destroy` again. If the {self.engine_title} no longer exists, `{DELETE_UNREACHABLE}=1 pulumi destroy` "
                    "removes the cluster from the state only"
                ) from None
            retained = ""
        return "; ".join(filter(None, [record_copy.retire(retain), retained]))

    def delete_task(self, props: TaskProps) -> None:
        """Stop and remove a task; if the engine is unreachable, `delete_all` reports that."""
        with suppress(Unreachable):
            self._remove(props["cluster"], [props["hostname"]], props["grace"], props.get("is_replaced", False))

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        with suppress(Unreachable):
            unlisted = [name for name in self.objects(cluster).tasks() if name not in (*hostnames, CONTROLLER)]
            if unlisted:
                self._remove(cluster, unlisted, self.grace(cluster))

    def _remove(self, cluster: ClusterRef, hostnames: Sequence[str], grace: float, is_replaced: bool = False) -> None:
        if not is_replaced:
            with suppress(OSError, CallError):
                self.controller(cluster).json("POST", "/stop", {"hostnames": list(hostnames)})
        self.remove_tasks(cluster, hostnames, self.stop_seconds(grace) + STOP_MARGIN)

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and wait until all tasks have stopped."""
        with suppress(Unreachable):
            self.end_run(props["cluster"])

    def end_run(self, cluster: ClusterRef, to_move: bool = False) -> bool:
        """Stop the run, or stop it `to_move` it; whether all its tasks have stopped. It waits for them."""

        def has_ended() -> bool:
            return not any(task.alive for name, task in self.objects(cluster).tasks().items() if name != CONTROLLER)

        if CONTROLLER not in self.objects(cluster).tasks():
            return has_ended()
        seconds = self.grace(cluster) + STOP_MARGIN
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

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """Ask the engine and the controller; read the copy of the record where the controller does not respond."""
        record_copy = RecordCopy(cluster)
        try:
            machines = self.observe_machines(cluster)
        except (BackendError, SpecError) as error:
            machines = ObservedMachines(others=UNKNOWN, problems=(str(error),))
        problems, engine = list(machines.problems), None
        if not problems:
            try:
                engine = self.objects(cluster).tasks()
            except (BackendError, SpecError) as error:
                problems.append(str(error))
        view, silent_since = observed_view(self.controller(cluster), record_copy, engine, query, is_preview, problems)
        missing: Sequence[str] = ()
        if engine is not None and view.run_state is not None:
            run = view.run_state
            needed = [task.hostname for task in run.tasks.values() if task.is_auxiliary or not _has_ended(run, task)]
            with suppress(BackendError, SpecError):  # the engine has stopped responding
                missing = self.missing(cluster, [*needed, CONTROLLER], engine)
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
            missing=missing,
            unreachable_remedy=self.unreachable_remedy,
            installing=installing(cluster, time.time()),
        )
