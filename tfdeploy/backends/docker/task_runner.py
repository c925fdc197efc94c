"""Tasks as services of a Swarm: created, updated, deleted and observed through the manager's engine."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from ...agent.run_spec import RunSpec
from ...agent.run_state import UNKNOWN, UNREACHABLE, RunState
from ...agent.transport.rpc import task_token
from ...errors import SpecError, Unreachable
from ...spec.cluster import JOBS
from .. import controller_calls, lost_record
from ..base import (
    CONTROLLER,
    ClusterRef,
    EngineTask,
    ObservedMachines,
    Retain,
    RunOutputs,
    RunProps,
    TaskOutputs,
    TaskProps,
)
from ..container_runner import ContainerRunner, engine_reason
from ..record_copy import RecordCopy, RecordCopyBusy
from ..record_view import DELETE_UNREACHABLE, refuse_loss
from ..rolling_update import Turns, replace_task, wait_for_finish, wait_for_start
from . import cleanup
from .containers import TRAIN_FOLDER
from .engine.controller_client import ControllerClient
from .engine.engine import Engine
from .labels import SPEC_HASH_LABEL, name_prefix
from .swarm import nodes
from .swarm.confirmed_end import lost_remedy, wait_for_former_launcher
from .swarm.services import (
    Service,
    controller_service,
    dependencies_of,
    stop_timeout,
    task_service,
    token_secret_name,
)
from .swarm.swarm import Swarm

CONTROLLER_TIMEOUT = 600.0
"""How long the controller may take to start once its image is on the machine."""

_STOP_MARGIN = 60.0


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


class DockerTaskRunner(ContainerRunner):
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

    def engine_tasks(self, cluster: ClusterRef) -> Mapping[str, EngineTask]:
        """The state of each service's task."""
        return self._swarm(cluster).tasks()

    def hostnames(self, cluster: ClusterRef) -> Sequence[str]:
        """Those with a service."""
        return [*self._swarm(cluster).services()]

    def remove_tasks(self, cluster: ClusterRef, hostnames: Sequence[str], grace: float) -> None:
        """Remove the services."""
        self._swarm(cluster).remove(*hostnames, timeout=stop_timeout(grace) + _STOP_MARGIN)

    def observe_machines(self, cluster: ClusterRef, is_preview: bool) -> ObservedMachines:
        """The machines."""
        return self._observe_machines(cluster, is_preview)

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
        with engine_reason(lambda: swarm.tasks().get(CONTROLLER)):
            wait_for_start(
                f"the controller of {swarm.cluster['name']}",
                lambda: swarm.runs_as_defined(desired),
                lambda: swarm.tasks().get(CONTROLLER),
                CONTROLLER_TIMEOUT,
            )
            yield self.controller(props["cluster"])

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller exists and this is its run; if the engine is unreachable, assume both."""
        try:
            if CONTROLLER not in self._swarm(props["cluster"]).services():
                return False
        except Unreachable:
            return True
        run = self.controller(props["cluster"]).current_run()
        return run is not None and run.spec.id == props["run"]["id"]

    @contextmanager
    def responding_controller(self, props: RunProps) -> Iterator[ControllerClient]:
        """Create or update the controller's service."""
        with self.started_controller(props) as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"], CONTROLLER_TIMEOUT)
            yield controller

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Remove all objects with the cluster's labels; retain the copy of the record, and volumes if requested."""
        record_copy = RecordCopy(cluster)
        machines = checkpoint_machines(record_copy.record.current())  # the controller has forgotten the tasks by now
        try:
            self.end_run(cluster)
            if not record_copy.download(self.controller(cluster)):
                refuse_loss(cluster, record_copy)
            timeout = stop_timeout(self.grace(cluster)) + _STOP_MARGIN
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


def _changes_network(old: TaskProps, props: TaskProps) -> bool:
    """Whether the update moves the task to another network, where the tasks of the old one could not reach it."""
    before, after = old["container"], props["container"]
    networks = old["dependencies"].get("network"), props["dependencies"].get("network")
    return before.get("network") != after["network"] or networks[0] != networks[1]
