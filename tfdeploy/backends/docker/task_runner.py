"""Tasks as services of a Swarm: created, updated, deleted and observed through the manager's engine."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from ...agent.model.run_state import UNREACHABLE, RunState
from ...agent.wire.rpc import task_token
from .. import controller_calls
from ..base import CONTROLLER, ClusterRef, ObservedMachines, Retain, RunProps, TaskOutputs, TaskProps
from ..container_layout import TRAIN_FOLDER
from ..container_runner import ContainerRunner
from . import cleanup
from .engine.controller_client import ControllerClient
from .engine.engine import Engine
from .labels import SPEC_HASH_LABEL
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


def manager_engine(cluster: ClusterRef) -> Engine:
    """The engine at the cluster's home."""
    return Engine(cluster["home"])


def observe_nodes(cluster: ClusterRef) -> ObservedMachines:
    """The nodes of the Swarm."""
    statuses = nodes.statuses(manager_engine(cluster))
    silent = [name for name, status in statuses.items() if status.startswith(UNREACHABLE)]
    return ObservedMachines(statuses, remedies={name: lost_remedy(name) for name in silent})


class DockerTaskRunner(ContainerRunner[Service]):
    """The contract is `backends.base.TaskRunner`.

    A backend that creates the machines gives its own `observe_machines`, and `engine`: how a cluster's engine is reached.
    """

    unreachable_remedy: ClassVar[str] = (
        "Start the engine, or correct `docker.host` or `DOCKER_HOST`, until `docker info` works."
    )

    def __init__(
        self,
        observe_machines: Callable[[ClusterRef], ObservedMachines] = observe_nodes,
        engine: Callable[[ClusterRef], Engine] = manager_engine,
    ) -> None:
        super().__init__()
        self._observe_machines = observe_machines
        self.engine = engine

    def controller(self, cluster: ClusterRef) -> ControllerClient:
        """Calls of the controller."""
        return ControllerClient(self.engine(cluster), cluster)

    def objects(self, cluster: ClusterRef) -> Swarm:
        """The services."""
        return Swarm(self.engine(cluster), cluster)

    def define_controller(self, props: RunProps) -> Service:
        """Its service."""
        return controller_service(props)

    def remove_tasks(self, cluster: ClusterRef, hostnames: Sequence[str], seconds: float) -> None:
        """Remove the services."""
        self.objects(cluster).remove(*hostnames, timeout=seconds)

    def remove_unused(self, props: RunProps) -> None:
        """Remove the images, configs and secrets that were replaced."""
        cleanup.remove_unused(self.objects(props["cluster"]), dependencies_of(props))

    def remove_all(self, cluster: ClusterRef, seconds: float, retain: Retain, runs: Sequence[RunState | None]) -> str:
        """Remove all objects with the cluster's labels; the volumes with checkpoints unless they are retained."""
        machines = {machine for run in runs for machine in checkpoint_machines(run)}
        return cleanup.remove_all(self.objects(cluster), seconds, retain["volumes"], machines)

    def stop_seconds(self, grace: float) -> float:
        """That of services."""
        return stop_timeout(grace)

    def observe_machines(self, cluster: ClusterRef) -> ObservedMachines:
        """The machines."""
        return self._observe_machines(cluster)

    def create_task(self, props: TaskProps) -> TaskOutputs:
        """Create the task's service, or adopt the existing one of its name."""
        swarm = self.objects(props["cluster"])
        self._wait_for_former_launcher(swarm, props["hostname"])
        swarm.create(_task_service(swarm, props))
        return {"created_at": controller_calls.now()}

    def _wait_for_former_launcher(self, swarm: Swarm, hostname: str) -> None:
        """A service that was removed may have left its container on a machine that does not respond."""
        if not nodes.unreachable(swarm.engine):
            return
        services = swarm.services()
        if hostname not in services and CONTROLLER in services:
            self._confirm_end(swarm, hostname)

    def _confirm_end(self, swarm: Swarm, hostname: str, machine: str = "") -> None:
        """Wait until the former launcher has ended or can be stopped: `wait_for_former_launcher`."""
        observe = partial(self.controller(swarm.cluster).former_launcher, hostname, machine)
        wait_for_former_launcher(hostname, observe, partial(nodes.unreachable, swarm.engine))

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        """Update the service: in a rolling update while a run is active, otherwise at once."""
        cluster, hostname = props["cluster"], props["hostname"]
        swarm = self.objects(cluster)
        desired = _task_service(swarm, props)
        existing = swarm.services().get(hostname)
        is_unchanged = existing and existing["Spec"]["Labels"].get(SPEC_HASH_LABEL) == desired.labels[SPEC_HASH_LABEL]
        at_once = existing is None or is_unchanged or _changes_network(old, props)
        # Not in the task's turn: all tasks of a machine wait at the same time.
        if not is_unchanged and nodes.unreachable(swarm.engine):
            self._confirm_end(swarm, hostname, old["machine"])

        return self.update(props, desired, lambda: _task_service(swarm, old), at_once)


def _task_service(swarm: Swarm, props: TaskProps) -> Service:
    """The service of a task, with the secret of its token, which is created if it does not exist."""
    token = task_token(props["token"], props["hostname"])
    secret = swarm.secret(token_secret_name(swarm.cluster, props["hostname"], token), token)
    return task_service({**props, "dependencies": {**props["dependencies"], "launcher_token": secret}})


def checkpoint_machines(run: RunState | None) -> set[str]:
    """The machines of the tasks of a run that uses the volume of the default `train_dir`."""
    if run is None or not run.spec.train_dir.startswith(TRAIN_FOLDER):
        return set()
    return {task.report.machine for task in run.tasks.values() if task.report.machine}


def _changes_network(old: TaskProps, props: TaskProps) -> bool:
    """Whether the update moves the task to another network, where the tasks of the old one could not reach it."""
    before, after = old["container"], props["container"]
    networks = old["dependencies"].get("network"), props["dependencies"].get("network")
    return before.get("network") != after["network"] or networks[0] != networks[1]
