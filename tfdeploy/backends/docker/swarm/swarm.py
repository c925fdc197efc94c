"""One cluster's services on a Swarm: create, update, remove and inspect them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError, NotFound

from .... import errors
from ....errors import BackendError
from ...base import ClusterRef, EngineTask
from ...controller_calls import wait_for
from ..engine.engine import Engine, engine_errors, ignore_conflict, retry_conflicts
from ..labels import HOSTNAME_LABEL, ID_LABEL, SPEC_HASH_LABEL, ServiceJson, Services, cluster_filter, cluster_labels
from .services import Reference, Service

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

_ENDED_STATES = ("complete", "failed", "shutdown", "rejected", "orphaned", "remove")
_FAILED_STATES = ("failed", "rejected")
_NO_REPLICAS = {"Replicated": {"Replicas": 0}}
_NAME_CONFLICT = 409

TaskJson = Mapping[str, Any]
"""A Swarm task in the form of the Engine API."""


@dataclass(frozen=True)
class TaskHistory:
    """What the engine reports of one service's tasks."""

    newest: EngineTask | None
    """None where there is no service."""
    failures: Sequence[TaskJson]
    """The tasks that could not start or failed, newest last."""


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

    def replace_agent(self, hostname: str, agent: Reference) -> bool:
        """Have an existing service run this agent; whether it ran another one."""
        is_replaced = False

        def update() -> bool:
            nonlocal is_replaced
            service = self.services().get(hostname)
            template = service["Spec"]["TaskTemplate"] if service else {"ContainerSpec": {"Configs": []}}
            configs = template["ContainerSpec"]["Configs"]
            if service is not None and configs and configs[0]["ConfigID"] != agent["id"]:
                config = {**configs[0], "ConfigID": agent["id"], "ConfigName": agent["name"]}
                container = {**template["ContainerSpec"], "Configs": [config]}
                self._update(service, {**template, "ContainerSpec": container}, service["Spec"]["Labels"])
                is_replaced = True
            return True

        retry_conflicts(hostname, update)
        return is_replaced

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
        """Create a service, or update the existing one of that name.

        Raises:
            BackendError: the engine refuses it, or the name belongs to something else.
        """
        retry_conflicts(desired.name, lambda: self._create_or_update(desired))

    def _create_or_update(self, desired: Service) -> bool:
        """False when another process created it meanwhile."""
        try:
            existing = self.engine.call(lambda api: api.inspect_service(desired.name))
        except NotFound:
            return self._create(desired)
        self._update_if_changed(existing, desired)
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
                )
            )
        except APIError as error:
            if error.status_code == _NAME_CONFLICT and "name conflicts" in str(error.explanation):
                return False
            raise
        return True

    def _update_if_changed(self, existing: ServiceJson, desired: Service) -> None:
        labels = existing["Spec"]["Labels"]
        if labels.get(ID_LABEL) != self.cluster["id"]:
            wrong = f"a service of this name exists and does not belong to the cluster {self.cluster['name']}"
            raise BackendError(f"{desired.name}: {wrong}. Remove it.")
        if labels != desired.labels or is_scaled_to_zero(existing):
            # Other labels alone, as after `pulumi stack rename`, do not restart the container.
            self._update(existing, desired.template, desired.labels)

    def _update(
        self,
        existing: ServiceJson,
        template: Mapping[str, Any],
        labels: Mapping[str, str],
        force: bool = False,
        mode: Mapping[str, Any] | None = None,
    ) -> None:
        """`force` replaces the container though its definition is the same; the engine's default mode is one replica."""
        restarts = existing["Spec"]["TaskTemplate"].get("ForceUpdate", 0) + int(force)
        call = self.engine.call_once if force else self.engine.call
        call(
            lambda api: api.update_service(
                existing["ID"],
                existing["Version"]["Index"],
                {**template, "ForceUpdate": restarts},
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
        retry_conflicts(hostname, lambda: self._force_update(self._service(hostname)))

    def scale_to_zero(self, hostname: str, timeout: float) -> None:
        """Remove a service's container, until `restart`; wait until it has ended."""
        retry_conflicts(hostname, lambda: self._force_update(self._service(hostname), _NO_REPLICAS))
        service_id = self._service(hostname)["ID"]
        wait_for(lambda: not self._ending([service_id]), f"the container of {hostname} did not end", timeout)

    def _service(self, hostname: str) -> ServiceJson:
        services = self.services()
        require_service(services, self.cluster, hostname)
        return services[hostname]

    def _force_update(self, existing: ServiceJson, mode: Mapping[str, Any] | None = None) -> bool:
        spec = existing["Spec"]
        self._update(existing, spec["TaskTemplate"], spec["Labels"], force=True, mode=mode)
        return True

    def start_ended(self, hostnames: Sequence[str]) -> None:
        """Start the tasks among these that have no running launcher."""
        services, tasks = self.services(), self.tasks()
        for hostname in hostnames:
            service, task = services.get(hostname), tasks.get(hostname)
            if service is not None and (task is None or not task.alive):
                with engine_errors(f"starting {hostname}"), ignore_conflict():
                    self._force_update(service)

    def remove(self, *hostnames: str, timeout: float) -> None:
        """Remove services, and wait until their containers have ended."""
        service_ids = [item["ID"] for hostname, item in self.services().items() if hostname in hostnames]
        for service_id in service_ids:
            self.engine.remove(lambda api, service_id=service_id: api.remove_service(service_id))  # type: ignore[misc]
        if service_ids:
            error = f"the containers of {', '.join(hostnames)} did not end"
            wait_for(lambda: not self._ending(service_ids), error, timeout)

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
        return service is None or (bool(self._tasks_of([service["ID"]])) and not self._ending([service["ID"]]))

    def all_tasks_of(self, hostname: str) -> Sequence[TaskJson]:
        """The tasks of a service, on all machines."""
        service = self.services().get(hostname)
        return self._tasks_of([service["ID"]]) if service else []

    def _all_tasks(self) -> Sequence[TaskJson]:
        tasks: list[TaskJson] = self.engine.call(lambda api: api.tasks(filters=cluster_filter(self.cluster)))
        return tasks

    def _tasks_of(self, service_ids: Sequence[str]) -> list[TaskJson]:
        return [task for task in self._all_tasks() if task["ServiceID"] in service_ids]

    def _ending(self, service_ids: Sequence[str]) -> list[TaskJson]:
        """The tasks of these services that have not ended, on the machines that respond."""
        nodes = self.engine.call(lambda api: api.nodes())
        unreachable = {node["ID"] for node in nodes if node["Status"]["State"] != "ready"}
        return [
            task
            for task in self._tasks_of(service_ids)
            if task["Status"]["State"] not in _ENDED_STATES and task.get("NodeID") not in unreachable
        ]

    def tasks(self) -> Mapping[str, EngineTask]:
        """The state of each service's newest task by hostname; a service without a task is `scheduled`."""
        return {hostname: _engine_task(tasks) for hostname, tasks in self._tasks_by_hostname().items()}

    def history(self, hostname: str) -> TaskHistory:
        """The state of one service, and its failures."""
        tasks = self._tasks_by_hostname().get(hostname)
        if tasks is None:
            return TaskHistory(None, ())
        return TaskHistory(_engine_task(tasks), [task for task in tasks if task["Status"]["State"] in _FAILED_STATES])

    def _tasks_by_hostname(self) -> Mapping[str, Sequence[TaskJson]]:
        """The tasks of each service, newest last."""
        hostnames = {item["ID"]: hostname for hostname, item in self.services().items()}
        tasks: dict[str, list[TaskJson]] = {hostname: [] for hostname in hostnames.values()}
        for item in self._all_tasks():
            if item["ServiceID"] in hostnames:
                tasks[hostnames[item["ServiceID"]]].append(item)
        return {hostname: sorted(items, key=lambda item: str(item["CreatedAt"])) for hostname, items in tasks.items()}


def require_service(by_hostname: Mapping[str, object], cluster: ClusterRef, hostname: str) -> None:
    """Raise when a task has no service.

    Raises:
        errors.NotFound: with the command that creates it.
    """
    if hostname not in by_hostname:
        remedy = "`pulumi up --refresh` creates it again, unless the cluster was destroyed"
        raise errors.NotFound(f"{hostname} of {cluster['name']} does not have a service. {remedy}.")


def is_scaled_to_zero(service: ServiceJson) -> bool:
    """Whether a service has no task, after `Swarm.scale_to_zero`."""
    replicas = service["Spec"].get("Mode", {}).get("Replicated", {}).get("Replicas", 1)
    return bool(replicas == 0)


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
