"""Access to one task of a cluster on a Swarm: the contract is `backends.base.TaskAccess`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from docker.errors import APIError

from ...errors import BackendError, NotFound, Unreachable
from ..base import CONTROLLER, ClusterRef, TaskUsage
from ..connection import Connection
from ..container_access import ContainerAccess
from ..parallel_calls import for_all
from ..task_access import require_task
from . import cleanup
from .engine.engine import Engine, engine_errors
from .engine.exec import ExecStream
from .labels import Services, machine_of
from .swarm import nodes
from .swarm.confirmed_end import lost_remedy
from .swarm.services import AGENT_COMMAND
from .swarm.swarm import Swarm
from .task_runner import DockerTaskRunner
from .volumes import exclusive_volumes, restart_effects

_REMOVE_TIMEOUT = 120.0

_PARALLEL_CALLS = 16
"""An engine measures each container for a second, several at once."""


class DockerAccess(ContainerAccess[DockerTaskRunner]):
    """Services of a Swarm."""

    def _engine(self, cluster: ClusterRef) -> Engine:
        """The engine that manages the Swarm."""
        return self.runner.engine(cluster)

    def _swarm(self, cluster: ClusterRef) -> Swarm:
        return self.runner.objects(cluster)

    def refuse_restart(self, cluster: ClusterRef, hostname: str) -> None:
        """A task stays on its machine when it is restarted, so that machine must respond."""
        machine = machine_of(self._services(cluster, hostname)[hostname])
        if status := nodes.unreachable(self._engine(cluster)).get(machine):
            raise BackendError(
                f"{hostname} cannot be started again on its machine: {machine} is {status}. {lost_remedy(machine)}"
            )

    def effects(self, cluster: ClusterRef, hostname: str, train_dir: str, replace: bool) -> Sequence[str]:
        """What becomes of its container and of its volumes."""
        return restart_effects(cluster, self._services(cluster, hostname), hostname, train_dir, replace)

    def start_again(self, cluster: ClusterRef, hostname: str, replace: bool) -> None:
        """Replace its container; with `replace` without the volumes that only it mounts, which are removed while it is stopped."""
        swarm = self._swarm(cluster)
        services = swarm.services()
        volumes = exclusive_volumes(cluster, services, hostname) if replace else []
        if not volumes:
            swarm.restart(hostname)
            return
        stopped = swarm.stop(hostname)
        try:
            engine = None  # where this computer does not know the address of the machine's engine
            with suppress(BackendError):
                engine = self._machine_engine(cluster, machine_of(services[hostname]), hostname, "")
            cleanup.remove_volumes(swarm, services, hostname, volumes, _REMOVE_TIMEOUT, engine)
        finally:
            try:
                swarm.apply(stopped)
            except BackendError as error:
                remedy = "`pulumi up --refresh` starts it again"
                raise BackendError(
                    f"{hostname} was stopped and could not be started again: {error}. {remedy}."
                ) from None

    def lost_effect(self, cluster: ClusterRef, machine: str) -> str:
        """The node is removed from the Swarm."""
        machines = {machine_of(service) for service in self._swarm(cluster).services().values()}
        if not nodes.refuse_reachable(self._engine(cluster), machine) and machine not in machines:
            raise NotFound(f"the Swarm has no machine {machine!r}, and no task of {cluster['name']} is on one.")
        return (
            f"{machine} is removed from the Swarm, for all that use it, and its tasks start on other machines. You promise that "
            f"{machine} is off, or has lost its containers for good: if it returns, its programs may run beside the new ones until "
            "their launchers reach the controller, which ends them."
        )

    def confirm_lost(self, cluster: ClusterRef, machine: str) -> None:
        """Remove the node from the Swarm: the only place that every user of the Swarm sees."""
        engine = self._engine(cluster)
        for node_id in nodes.refuse_reachable(engine, machine):
            with engine_errors(f"docker node rm --force {machine}"):
                engine.remove(lambda api, node_id=node_id: api.remove_node(node_id, force=True))  # type: ignore[misc]

    def start_command(
        self, cluster: ClusterRef, hostname: str, words: Sequence[str], env: Mapping[str, str] = {}, tty: bool = False
    ) -> ExecStream:
        """In the container of the service."""
        service = self._services(cluster, hostname)[hostname]
        container = self.container(cluster, hostname, "service")
        engine = self._machine_engine(cluster, machine_of(service), hostname, container)
        return ExecStream(engine, container, [*AGENT_COMMAND, *words], env, tty)

    def _machine_engine(self, cluster: ClusterRef, machine: str, hostname: str, container: str) -> Engine:
        """The engine of a machine; an empty name is the manager.

        Raises:
            BackendError: this computer does not know the engine's address.
        """
        engine = self._engine(cluster)
        if machine in ("", engine.name()):
            return engine
        raise BackendError(
            f"{hostname} runs on {machine}, but docker.host ({engine.host}) gives access to the manager's containers only. "
            f"Run this on {machine}: docker exec -it {container} sh"
        )

    def relay(self, cluster: ClusterRef, host: str, port: int) -> Callable[[], Connection]:
        """A command in the controller's container, which is in the tasks' network."""
        engine, controller = self._engine(cluster), self.runner.controller(cluster)
        services = self._swarm(cluster).services()
        if CONTROLLER not in services:
            raise Unreachable(
                f"the controller of {cluster['name']} does not exist, and connections to tasks go through it. "
                "`pulumi up --refresh` creates it again."
            )
        command = [*AGENT_COMMAND, "tcp-relay", host, str(port)]
        return lambda: ExecStream(engine, controller.container(), command)

    def usage(self, cluster: ClusterRef) -> Mapping[str, TaskUsage]:
        """From the engine of each task's machine."""
        swarm = self._swarm(cluster)
        services, tasks = swarm.services(), swarm.tasks()
        containers = {
            name: task.container for name, task in tasks.items() if task.alive and task.container and name != CONTROLLER
        }

        def engine_of(hostname: str) -> Engine:
            return self._machine_engine(cluster, machine_of(services[hostname]), hostname, containers[hostname])

        return measure({name: item for name, item in containers.items() if name in services}, engine_of)

    def _services(self, cluster: ClusterRef, hostname: str) -> Services:
        """The cluster's services.

        Raises:
            NotFound: the task is not among them.
        """
        services = self._swarm(cluster).services()
        require_task(services, cluster, hostname, "service")
        return services


def usage_of(stats: Mapping[str, Any]) -> TaskUsage | None:
    """The use of one container, as `docker stats` computes it; None if it does not run:
    https://docs.docker.com/reference/api/engine/version/v1.47/#tag/Container."""
    now, before, memory = stats["cpu_stats"], stats["precpu_stats"], stats["memory_stats"]
    if not memory.get("usage"):
        return None
    used = now["cpu_usage"]["total_usage"] - before["cpu_usage"]["total_usage"]
    passed = now.get("system_cpu_usage", 0) - before.get("system_cpu_usage", 0)
    cpus = used / passed * (now.get("online_cpus") or 1) if passed > 0 else 0.0
    details = memory.get("stats", {})
    cache = details.get("inactive_file", details.get("total_inactive_file", 0))
    return TaskUsage(max(0.0, cpus), max(0, memory["usage"] - cache))


def measure(containers: Mapping[str, str], engine_of: Callable[[str], Engine]) -> Mapping[str, TaskUsage]:
    """The use of these containers, by hostname; without those that have ended or that this computer does not reach."""

    def measured(hostname: str) -> TaskUsage | None:
        try:
            stats = engine_of(hostname).call(lambda api: api.stats(containers[hostname], stream=False))
        except (BackendError, APIError):  # it may have ended since it was listed
            return None
        return usage_of(stats)

    usages = zip(containers, for_all([*containers], measured, _PARALLEL_CALLS), strict=True)
    return {hostname: usage for hostname, usage in usages if usage is not None}
