"""Tasks as services of a Swarm: created, updated, deleted and observed through the manager's engine."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

from ...agent.record.record import RecordView, ViewRequest
from ...agent.run_spec import RunSpec
from ...agent.run_state import UNKNOWN, UNREACHABLE, RunState
from ...agent.transport.rpc import CallError, task_token
from ...errors import BackendError, SpecError, Unreachable
from ...spec.cluster import JOBS
from .. import controller_calls, lost_record
from ..base import (
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
from ..installation import installing
from ..move import StoppedRun, not_stopped
from ..record_copy import RecordCopy, RecordCopyBusy, RecordCopyError, RecordLost
from . import cleanup
from .containers import TRAIN_FOLDER
from .engine.controller_client import ControllerClient
from .engine.engine import Engine
from .labels import SPEC_HASH_LABEL, name_prefix
from .swarm import nodes
from .swarm.former_launcher import lost_remedy, wait_for_former_launcher
from .swarm.rolling_update import Turns, replace_task, wait_for_finish, wait_for_start
from .swarm.services import (
    Service,
    controller_service,
    dependencies_of,
    stop_timeout,
    task_service,
    token_secret_name,
)
from .swarm.swarm import Swarm

_log = logging.getLogger(__name__)

CONTROLLER_TIMEOUT = 600.0
"""How long the controller may take to start once its image is on the machine."""

_STOP_MARGIN = 60.0

DELETE_UNREACHABLE = "TFDEPLOY_DELETE_UNREACHABLE"
"""Set to 1, `pulumi destroy` succeeds although the engine does not respond."""


def manager_engine(cluster: ClusterRef) -> Engine:
    """The engine at the cluster's home."""
    return Engine(cluster["home"])


def observe_nodes(cluster: ClusterRef, is_preview: bool) -> ObservedMachines:
    """The nodes of the Swarm."""
    try:
        engine = manager_engine(cluster)
        statuses = nodes.statuses(engine)
        silent = [name for name, status in statuses.items() if status.startswith(UNREACHABLE)]
        return ObservedMachines(statuses, remedies={name: lost_remedy(name) for name in silent})
    except (Unreachable, SpecError) as error:
        return ObservedMachines(others=UNKNOWN, problems=(str(error),))


class DockerTaskRunner:
    """The contract is `backends.base.TaskRunner`.

    A backend that creates the machines gives its own `observe_machines`, and `engine`: how a cluster's engine is reached.
    """

    def __init__(
        self,
        observe_machines: Callable[[ClusterRef, bool], ObservedMachines] = observe_nodes,
        engine: Callable[[ClusterRef], Engine] = manager_engine,
    ) -> None:
        self._observe_machines = observe_machines
        self.engine = engine
        self._turns: dict[str, Turns] = {}
        self._controller_lock = threading.Lock()
        self._unreachable_machines = nodes.UnreachableMachines()

    def _swarm(self, cluster: ClusterRef) -> Swarm:
        return Swarm(self.engine(cluster), cluster)

    def controller(self, cluster: ClusterRef) -> ControllerClient:
        """Calls of the controller."""
        return ControllerClient(self.engine(cluster), cluster)

    def create_task(self, props: TaskProps) -> TaskOutputs:
        """Create the task's service, or adopt the existing one of its name."""
        swarm = self._swarm(props["cluster"])
        self._wait_for_former_launcher(swarm, props["hostname"])
        swarm.create(_task_service(swarm, props))
        return {"created_at": controller_calls.now()}

    def _wait_for_former_launcher(self, swarm: Swarm, hostname: str) -> None:
        """A service that was removed may have left its container on a machine that does not respond."""
        if not self._unreachable_machines.recent(swarm.engine):
            return
        services = swarm.services()
        if hostname not in services and CONTROLLER in services:
            self._confirm_end(swarm, hostname)

    def _confirm_end(self, swarm: Swarm, hostname: str, machine: str = "") -> frozenset[str]:
        """Wait until the former launcher has ended or can be stopped: `wait_for_former_launcher`."""
        observe = partial(self.controller(swarm.cluster).former_launcher, hostname, machine)
        return wait_for_former_launcher(hostname, observe, partial(nodes.unreachable, swarm.engine))

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        """Update the service: in a rolling update while a run is active, otherwise at once."""
        cluster, hostname = props["cluster"], props["hostname"]
        swarm, controller = self._swarm(cluster), self.controller(cluster)
        desired = _task_service(swarm, props)
        existing = swarm.services().get(hostname)
        is_unchanged = existing and existing["Spec"]["Labels"].get(SPEC_HASH_LABEL) == desired.labels[SPEC_HASH_LABEL]
        at_once = existing is None or is_unchanged or _changes_network(old, props)
        # Not in the task's turn: all tasks of a machine wait at the same time.
        may_run = not is_unchanged and bool(self._unreachable_machines.recent(swarm.engine))
        ended = self._confirm_end(swarm, hostname, old["machine"]) if may_run else frozenset()
        run = None if at_once else controller.current_run()
        if at_once or (run is not None and run.result is not None):
            wait_for_finish(run, hostname, controller.current_run)
            swarm.apply(desired, ended)
        else:
            self._replace_old_controller(swarm, controller, old, props)
            previous = _task_service(swarm, old)
            replace = partial(replace_task, swarm, desired, previous, hostname, controller.current_run, ended)
            turns = self._turns.setdefault(f"{cluster['home']} {name_prefix(cluster)}", Turns())
            turns.take((JOBS.index(props["job"]), props["index"]), hostname, replace)
        return {"created_at": controller_calls.now()}

    def _replace_old_controller(
        self, swarm: Swarm, controller: ControllerClient, old: TaskProps, props: TaskProps
    ) -> None:
        """A controller of version 0.1.0 does not know the tokens of tasks. A new one knows the token that launchers have until their
        update."""
        if "launcher_token" not in old["dependencies"]:
            return
        with self._controller_lock:
            former = ""
            with suppress(Unreachable):
                former = controller.container()
            if swarm.replace_agent(CONTROLLER, props["dependencies"]["agent"]):
                controller_calls.wait_for(
                    lambda: controller.container() != former and controller.json("GET", "/stopped"),
                    f"the new controller of {swarm.cluster['name']} did not respond",
                    CONTROLLER_TIMEOUT,
                )

    def task_exists(self, props: TaskProps) -> bool:
        """Whether the Swarm has the service; if the engine is unreachable, assume that it has."""
        try:
            return props["hostname"] in self._swarm(props["cluster"]).services()
        except Unreachable:
            return True

    def delete_task(self, props: TaskProps) -> None:
        """Stop and remove the service; if the engine is unreachable, `delete_all` reports that."""
        with suppress(Unreachable):
            self._remove(props["cluster"], [props["hostname"]], stop_timeout(props["grace"]))

    def _remove(self, cluster: ClusterRef, hostnames: Sequence[str], timeout: float) -> None:
        if hostnames:
            with suppress(OSError, CallError):
                self.controller(cluster).json("POST", "/stop", {"hostnames": list(hostnames)})
            self._swarm(cluster).remove(*hostnames, timeout=timeout + _STOP_MARGIN)

    def submit_run(self, props: RunProps) -> RunOutputs:
        """Create or update the controller, submit code and run, and start the launchers that have exited."""
        cluster = props["cluster"]
        swarm = self._swarm(cluster)
        with self.started_controller(props) as controller:
            if restored := lost_record.restore(controller, cluster, CONTROLLER_TIMEOUT):
                print(f"{cluster['name']}: {restored}.", flush=True)
            run = RunSpec.from_dict(props["run"])
            accepted = controller_calls.submit(controller, props, run, CONTROLLER_TIMEOUT)
        controller_calls.start_launchers(controller, accepted["at"], swarm.start_ended)
        with suppress(RecordCopyBusy):  # the observation that follows reports it
            RecordCopy(cluster).update(controller)
        cleanup.remove_unused(swarm, dependencies_of(props))
        return {"submitted_at": controller_calls.now(), "train_dir": accepted["train_dir"]}

    @contextmanager
    def started_controller(self, props: RunProps) -> Iterator[ControllerClient]:
        """Create or update the controller, and wait until it runs. Errors meanwhile have the engine's reason why it does not."""
        swarm, desired = self._swarm(props["cluster"]), controller_service(props)
        swarm.apply(desired)
        try:
            wait_for_start(
                f"the controller of {swarm.cluster['name']}",
                lambda: swarm.runs_as_defined(desired),
                lambda: swarm.tasks().get(CONTROLLER),
                CONTROLLER_TIMEOUT,
            )
            yield self.controller(props["cluster"])
        except BackendError as error:
            task = swarm.tasks().get(CONTROLLER)
            reason = f" ({task.state}: {task.reason})" if task and task.reason else ""
            raise BackendError(f"{error}{reason}") from None

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller exists and this is its run; if the engine is unreachable, assume both."""
        try:
            if CONTROLLER not in self._swarm(props["cluster"]).services():
                return False
        except Unreachable:
            return True
        run = self.controller(props["cluster"]).current_run()
        return run is not None and run.spec.id == props["run"]["id"]

    def stop_run(self, props: RunProps) -> None:
        """Stop the run, and wait until all tasks have stopped."""
        with suppress(Unreachable):
            self.end_run(props["cluster"])

    def end_run(self, cluster: ClusterRef, to_move: bool = False) -> bool:
        """Stop the run, or stop it `to_move` it; whether all its tasks have stopped. It waits for them."""
        swarm = self._swarm(cluster)

        def has_ended() -> bool:
            return not any(task.alive for name, task in swarm.tasks().items() if name != CONTROLLER)

        if CONTROLLER not in swarm.services():
            return has_ended()
        seconds = self._grace(cluster) + _STOP_MARGIN
        return controller_calls.stop(self.controller(cluster), has_ended, seconds, to_move) or has_ended()

    def _grace(self, cluster: ClusterRef) -> float:
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

    @contextmanager
    def responding_controller(self, props: RunProps) -> Iterator[ControllerClient]:
        """Create or update the controller's service."""
        with self.started_controller(props) as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"], CONTROLLER_TIMEOUT)
            yield controller

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove the tasks that are not listed."""
        with suppress(Unreachable):
            existing = self._swarm(cluster).services()
            unlisted = [name for name in existing if name not in (*hostnames, CONTROLLER)]
            if unlisted:
                self._remove(cluster, unlisted, stop_timeout(self._grace(cluster)))

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Remove all objects with the cluster's labels; retain the copy of the record, and volumes if requested."""
        record_copy = RecordCopy(cluster)
        machines = checkpoint_machines(record_copy.record.current())  # the controller has forgotten the tasks by now
        try:
            self.end_run(cluster)
            if not record_copy.download(self.controller(cluster)):
                _refuse_loss(cluster, record_copy)
            timeout = stop_timeout(self._grace(cluster)) + _STOP_MARGIN
            machines |= checkpoint_machines(record_copy.record.current())
            volumes = cleanup.remove_all(self._swarm(cluster), timeout, retain["volumes"], machines)
        except Unreachable as error:
            if os.environ.get(DELETE_UNREACHABLE) != "1":
                raise Unreachable(
                    f"{error}, so the objects of {cluster['name']} there cannot be removed. "
                    "Restore the connection and run `pulumi destroy` again. If the engine no longer exists, "
                    f"`{DELETE_UNREACHABLE}=1 pulumi destroy` removes the cluster from the state only"
                ) from None
            volumes = ""
        return "; ".join(filter(None, [record_copy.retire(), volumes]))

    def observe(self, cluster: ClusterRef, token: str, query: ViewRequest, is_preview: bool = False) -> ObservedState:
        """Ask the controller and the Swarm; read the copy of the record where the controller does not respond."""
        record_copy = RecordCopy(cluster)
        machines = self._observe_machines(cluster, is_preview)
        problems, engine = list(machines.problems), None
        if not problems:
            try:
                engine = self._swarm(cluster).tasks()
            except (Unreachable, SpecError) as error:
                problems.append(str(error))
        view, silent_since = _view(self.controller(cluster), record_copy, engine, query, is_preview, problems)
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


def _refuse_loss(cluster: ClusterRef, record_copy: RecordCopy) -> None:
    """Refuse to delete the only copy of artifacts, unless the user says so."""
    missing = "" if record_copy.record.has_moved() else record_copy.missing_artifacts()
    if missing and os.environ.get(DELETE_UNREACHABLE) != "1":
        raise BackendError(
            f"{cluster['name']}: the controller does not respond, and {missing}. Nothing is deleted. Run `pulumi destroy` again when "
            f"it does (`tfdeploy explain` shows why it does not). `{DELETE_UNREACHABLE}=1 pulumi destroy` deletes them"
        )


def _task_service(swarm: Swarm, props: TaskProps) -> Service:
    """The service of a task, with the secret of its token, which is created if it does not exist. In a state of version 0.1.0 all tasks
    have one."""
    dependencies = props["dependencies"]
    if "launcher_token" not in dependencies:
        token = task_token(props["token"], props["hostname"])
        secret = swarm.secret(token_secret_name(swarm.cluster, props["hostname"], token), token)
        dependencies = {**dependencies, "launcher_token": secret}
    return task_service({**props, "dependencies": dependencies})


def checkpoint_machines(run: RunState | None) -> set[str]:
    """The machines of the tasks of a run that uses the volume of the default `train_dir`."""
    if run is None or not run.spec.train_dir.startswith(TRAIN_FOLDER):
        return set()
    return {task.machine for task in run.tasks.values() if task.machine}


def _view(
    controller: ControllerClient,
    record_copy: RecordCopy,
    engine: Mapping[str, EngineTask] | None,
    query: ViewRequest,
    is_preview: bool,
    problems: list[str],
) -> tuple[RecordView, float | None]:
    """The view of the record, brought up to date where the controller responds; otherwise since when it does not. A preview gets
    the controller's own view, because it writes nothing. A controller that has lost the record is one of the `problems`."""
    try:
        if engine is not None and CONTROLLER not in engine:
            raise Unreachable("the controller does not exist")
        if is_preview:
            return controller_calls.view(controller, query), None
        try:
            update = record_copy.update(controller)
        except RecordCopyError as error:
            _warn(str(error))
            return controller_calls.view(controller, query), None
    except (OSError, CallError) as error:
        problems += [str(error)] if isinstance(error, RecordLost) else []
        record = record_copy.record
        return record.view(query, record.current()), record.last_alive()
    view = record_copy.record.view(query, update.run_state)
    return replace(view, at=update.at or view.at), None


@cache
def _warn(text: str) -> None:
    """Print a warning, once in a process."""
    _log.warning("Warning: %s", text)


def _changes_network(old: TaskProps, props: TaskProps) -> bool:
    """Whether the update moves the task to another network, where the tasks of the old one could not reach it."""
    before, after = old["container"], props["container"]
    networks = old["dependencies"].get("network"), props["dependencies"].get("network")
    return before.get("network") != after["network"] or networks[0] != networks[1]
