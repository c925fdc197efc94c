"""One cluster's services on a Swarm: create, update, remove and inspect them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from docker.errors import APIError, NotFound

from ....errors import BackendError
from ...base import ClusterRef, EngineTask
from ...controller_calls import wait_for
from ...parallel_calls import PARALLEL_CALLS, for_all
from ...rolling_update import StartFailure, TaskHistory
from ...task_access import require_task
from ..engine.engine import Engine, engine_errors, retry_conflicts
from ..labels import HOSTNAME_LABEL, ID_LABEL, SPEC_HASH_LABEL, ServiceJson, Services, cluster_filter, cluster_labels
from .nodes import NodeJson, is_reachable
from .services import NO_TASK_MODE, TASK_MODE, Reference, Service

_STARTING_STATES = {
    "new": "scheduled",
    "allocated": "scheduled",
    "pending": "scheduled",
    "assigned": "scheduled",
    "accepted": "scheduled",
    "preparing": "pulling",
    "ready": "starting",
}
"""Swarm's states of a task that does not run yet, and ours.
https://docs.docker.com/engine/swarm/how-swarm-mode-works/swarm-task-states/"""

_ORPHANED = "orphaned"
_ENDED_STATES = ("complete", "failed", "shutdown", "rejected", _ORPHANED, "remove")
_FAILED_STATES = ("failed", "rejected")
_NAME_CONFLICT = 409
_STOP_MARGIN = 60.0

TaskJson = Mapping[str, Any]
"""A Swarm task in the form of the Engine API."""


@dataclass(frozen=True)
class Swarm:
    """One cluster's services on the Swarm that an engine manages."""

    engine: Engine
    cluster: ClusterRef

    def services(self) -> Services:
        """The cluster's services by hostname."""
        services = self.engine.call(lambda api: api.services(filters=cluster_filter(self.cluster)))
        return {item["Spec"]["Labels"].get(HOSTNAME_LABEL, item["Spec"]["Name"]): item for item in services}

    def mounted_secrets(self) -> set[str]:
        """The ids of the secrets that the cluster's services mount."""
        containers = [item["Spec"]["TaskTemplate"]["ContainerSpec"] for item in self.services().values()]
        return {secret["SecretID"] for container in containers for secret in container.get("Secrets") or ()}

    def secret(self, name: str, content: str) -> Reference:
        """A secret of the cluster with this name and content, created if it does not exist. The name identifies the content.

        Raises:
            BackendError: the engine refuses it.
        """
        labels = dict(cluster_labels(self.cluster))
        with engine_errors(name):
            try:
                created = self.engine.call(lambda api: api.create_secret(name, content.encode(), labels))
                return Reference(id=created["ID"], name=name)
            except APIError as error:
                if error.status_code != _NAME_CONFLICT:
                    raise
            secrets = self.engine.call(lambda api: api.secrets(filters={"name": name}))
            return Reference(id=next(item["ID"] for item in secrets if item["Spec"]["Name"] == name), name=name)

    def create(self, desired: Service) -> None:
        """Create a service that does not exist, as far as the caller knows; update the one of that name where it does.

        Raises:
            BackendError: the engine refuses it, or the name belongs to something else.
        """
        with engine_errors(desired.name):
            is_created = self._create(desired)
        if not is_created:
            self.apply(desired)

    def apply(self, desired: Service) -> None:
        """Create a service, or update the existing one of that name. That of a task is removed and, when its container has ended,
        created again.

        Raises:
            BackendError: the engine refuses it, the name belongs to something else, or the container does not end.
        """
        retry_conflicts(desired.name, lambda: self._create_or_update(desired))

    def _create_or_update(self, desired: Service) -> bool:
        """False when another process created it meanwhile."""
        try:
            existing = self.engine.call(lambda api: api.inspect_service(desired.name))
        except NotFound:
            return self._create(desired)
        labels = existing["Spec"]["Labels"]
        if labels.get(ID_LABEL) != self.cluster["id"]:
            wrong = f"a service of this name exists and does not belong to the cluster {self.cluster['name']}"
            raise BackendError(f"{desired.name}: {wrong}. Remove it.")
        if desired.mode is not None:
            # Other labels alone, as after `pulumi stack rename`, are not worth a restart.
            is_same = labels.get(SPEC_HASH_LABEL) == desired.labels[SPEC_HASH_LABEL]
            return is_same or self._replace(existing, desired)
        if labels != desired.labels:
            self._update(existing, desired.template, desired.labels)
        return True

    def _create(self, desired: Service) -> bool:
        """Create it; False where one of that name exists."""
        try:
            self.engine.call(
                lambda api: api.create_service(
                    {**desired.template},
                    name=desired.name,
                    labels=dict(desired.labels),
                    endpoint_spec={"Mode": "dnsrr"},
                    mode=desired.mode,
                )
            )
        except APIError as error:
            if error.status_code == _NAME_CONFLICT and "name conflicts" in str(error.explanation):
                return False
            raise
        return True

    def _replace(self, existing: ServiceJson, desired: Service) -> bool:
        """Remove a service, wait until its container has ended, and create another of its name; False as `_create`. Where the engine
        refuses the new one, the task keeps the old one."""
        self._stop(existing)
        try:
            return self._create(desired)
        except APIError:
            self._create(_task_service(existing))
            raise

    def _stop(self, existing: ServiceJson) -> None:
        """Remove a service, and wait until its containers have ended.

        Raises:
            BackendError: one has not in time; the message has the command that creates the service again.
        """
        spec = existing["Spec"]
        timeout = spec["TaskTemplate"]["ContainerSpec"].get("StopGracePeriod", 0) / 1e9 + _STOP_MARGIN
        error = f"{spec['Name']}: its container did not end. `pulumi up --refresh` starts the task again when it has"
        self._remove_all([existing], lambda _: False, error, timeout)

    def _remove_all(
        self, services: Sequence[ServiceJson], is_ignored: Callable[[NodeJson], bool], error: str, timeout: float
    ) -> None:
        """Remove services, and wait until their containers have ended, except on nodes that are ignored. Docker before 23 does not end
        those of a running job whose service is removed, so it first gets no task."""
        jobs = [item["ID"] for item in services if "ReplicatedJob" in item["Spec"].get("Mode", {})]
        others = [item["ID"] for item in services if item["ID"] not in jobs]
        for service_id in jobs:
            retry_conflicts(service_id, partial(self._end_job, service_id))
        self._remove_each(others)
        wait_for(lambda: not self._ending([*jobs, *others], is_ignored), error, timeout)
        self._remove_each(jobs)

    def _remove_each(self, service_ids: Sequence[str]) -> None:
        for service_id in service_ids:
            self.engine.remove(lambda api, service_id=service_id: api.remove_service(service_id))  # type: ignore[misc]

    def _end_job(self, service_id: str) -> bool:
        with suppress(NotFound):
            existing = self.engine.call(lambda api: api.inspect_service(service_id))
            self._update(existing, existing["Spec"]["TaskTemplate"], existing["Spec"]["Labels"], NO_TASK_MODE)
        return True

    def _update(
        self,
        existing: ServiceJson,
        template: Mapping[str, Any],
        labels: Mapping[str, str],
        mode: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine.call(
            lambda api: api.update_service(
                existing["ID"],
                existing["Version"]["Index"],
                {**template, "ForceUpdate": existing["Spec"]["TaskTemplate"].get("ForceUpdate", 0)},
                name=existing["Spec"]["Name"],
                labels=dict(labels),
                endpoint_spec={"Mode": "dnsrr"},
                mode=mode,
            )
        )

    def restart(self, hostname: str) -> None:
        """Replace a task's container.

        Raises:
            BackendError: the engine refuses it.
        """
        self.apply(self.stop(hostname))

    def stop(self, hostname: str) -> Service:
        """Remove a task's service, and wait until its container has ended; what `apply` creates again."""
        existing = self._service(hostname)
        self._stop(existing)
        return _task_service(existing)

    def _service(self, hostname: str) -> ServiceJson:
        services = self.services()
        require_task(services, self.cluster, hostname, "service")
        return services[hostname]

    def start_ended(self, hostnames: Sequence[str]) -> None:
        """Start the tasks among these that have no running launcher."""
        services, tasks = self.services(), self.tasks()
        ended = [name for name in hostnames if name in services and not (name in tasks and tasks[name].alive)]

        def start(hostname: str) -> None:
            with engine_errors(f"starting {hostname}"):
                self.engine.remove(lambda api: api.remove_service(services[hostname]["ID"]))
                self._create(_task_service(services[hostname]))

        for_all(ended, start, PARALLEL_CALLS)

    def remove(self, *hostnames: str, timeout: float) -> None:
        """Remove services, and wait until their containers have ended."""
        services = [item for hostname, item in self.services().items() if hostname in hostnames]
        error = f"the containers of {', '.join(hostnames)} did not end"
        if services:
            self._remove_all(services, lambda node: not is_reachable(node), error, timeout)

    def runs_as_defined(self, desired: Service) -> bool:
        """Whether the service's only task runs with the desired definition."""
        service = self.services().get(desired.labels[HOSTNAME_LABEL])
        if service is None:
            return False
        live = [task for task in self._tasks_of([service["ID"]]) if task["Status"]["State"] not in _ENDED_STATES]
        hashes = [task["Spec"]["ContainerSpec"]["Labels"].get(SPEC_HASH_LABEL) for task in live]
        return hashes == [desired.labels[SPEC_HASH_LABEL]] and live[0]["Status"]["State"] == "running"

    def has_ended(self, hostname: str) -> bool:
        """Whether all tasks of a service have ended, on the machines that respond."""
        service = self.services().get(hostname)
        if service is None:
            return True
        service_ids = [service["ID"]]
        return bool(self._tasks_of(service_ids)) and not self._ending(service_ids, lambda node: not is_reachable(node))

    def all_tasks_of(self, hostname: str) -> Sequence[TaskJson]:
        """The tasks of a service, on all machines."""
        service = self.services().get(hostname)
        return self._tasks_of([service["ID"]]) if service else []

    def _all_tasks(self) -> Sequence[TaskJson]:
        tasks: list[TaskJson] = self.engine.call(lambda api: api.tasks(filters=cluster_filter(self.cluster)))
        return tasks

    def _tasks_of(self, service_ids: Sequence[str]) -> list[TaskJson]:
        return [task for task in self._all_tasks() if task["ServiceID"] in service_ids]

    def _ending(self, service_ids: Sequence[str], is_ignored: Callable[[NodeJson], bool]) -> list[TaskJson]:
        """The tasks of these services that have not ended, except on nodes that are ignored. A Swarm calls a task `orphaned` also when
        its node has been down for 24 hours, which does not end it."""
        nodes = {node["ID"]: node for node in self.engine.call(lambda api: api.nodes())}
        ignored = {node_id for node_id, node in nodes.items() if is_ignored(node)}

        def has_ended(task: TaskJson) -> bool:
            state, node_id = task["Status"]["State"], task.get("NodeID")
            is_lost = state == _ORPHANED and node_id in nodes
            return node_id in ignored or (state in _ENDED_STATES and not is_lost)

        return [task for task in self._tasks_of(service_ids) if not has_ended(task)]

    def tasks(self) -> Mapping[str, EngineTask]:
        """The state of each service's newest task by hostname; a service without a task is `scheduled`."""
        return {hostname: _engine_task(tasks) for hostname, tasks in self._tasks_by_hostname().items()}

    def history(self, hostname: str) -> TaskHistory:
        """The state of one service, and its failures."""
        tasks = self._tasks_by_hostname().get(hostname)
        if tasks is None:
            return TaskHistory(None, ())
        failed = [task for task in tasks if task["Status"]["State"] in _FAILED_STATES]
        failures = [StartFailure(task["ID"], task["Status"].get("Err", "")) for task in failed]
        return TaskHistory(_engine_task(tasks), failures)

    def _tasks_by_hostname(self) -> Mapping[str, Sequence[TaskJson]]:
        """The tasks of each service, newest last."""
        hostnames = {item["ID"]: hostname for hostname, item in self.services().items()}
        tasks: dict[str, list[TaskJson]] = {hostname: [] for hostname in hostnames.values()}
        for item in self._all_tasks():
            if item["ServiceID"] in hostnames:
                tasks[hostnames[item["ServiceID"]]].append(item)
        return {hostname: sorted(items, key=lambda item: str(item["CreatedAt"])) for hostname, items in tasks.items()}


def _task_service(existing: ServiceJson) -> Service:
    """The definition of an existing service of a task."""
    spec = existing["Spec"]
    return Service(spec["Name"], spec["Labels"], spec["TaskTemplate"], TASK_MODE)


def _engine_task(tasks: Sequence[TaskJson]) -> EngineTask:
    """The state of a service from its tasks, oldest first. While Swarm retries a rejected task, the service is `rejected`."""
    if not tasks:
        return EngineTask(True, "", "scheduled")
    newest = tasks[-1]
    is_retry = (
        len(tasks) > 1 and newest["Status"]["State"] in _STARTING_STATES and tasks[-2]["Status"]["State"] == "rejected"
    )
    status = tasks[-2 if is_retry else -1]["Status"]
    state = _STARTING_STATES.get(status["State"], status["State"])
    container = status.get("ContainerStatus", {}).get("ContainerID", "")[:12]
    reason = status.get("Err", "") if state != "complete" else ""
    return EngineTask(status["State"] not in _ENDED_STATES, container, state, reason)
