"""Services made, changed, removed and looked at on a Swarm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError, NotFound

from ... import errors
from ...errors import BackendError
from ..base import Cluster, EngineTask
from ..keeping import wait_for
from . import names
from .engine import Engine, another_time, insist, refusals
from .services import Service

_WORDS = {
    "new": "scheduled",
    "allocated": "scheduled",
    "pending": "scheduled",
    "assigned": "scheduled",
    "accepted": "scheduled",
    "preparing": "pulling",
    "ready": "starting",
}
"""Swarm's words for a task on its way, in ours. https://docs.docker.com/engine/swarm/how-swarm-mode-works/swarm-task-states/"""

_NONE = {"Replicated": {"Replicas": 0}}
_OVER = ("complete", "failed", "shutdown", "rejected", "orphaned", "remove")


@dataclass(frozen=True)
class Swarm:
    """The part of a Swarm that is one cluster's."""

    engine: Engine
    cluster: Cluster

    def services(self) -> Mapping[str, Mapping[str, Any]]:
        """Hostname to service, of the cluster's own."""
        found = self.engine.call(lambda api: api.services(filters=names.filters(self.cluster)))
        return {item["Spec"]["Labels"].get(names.HOSTNAME, item["Spec"]["Name"]): item for item in found}

    def ensure(self, wanted: Service) -> None:
        """Make a service, or change the one of that name.

        Raises:
            BackendError: the engine refuses it, or the name is another's.
        """
        insist(wanted.name, lambda: self._stands(wanted))

    def _stands(self, wanted: Service) -> bool:
        """Change it, or make it where it is not there; whether it stands now: not when somebody else was quicker to make it."""
        try:
            self._change(self.engine.call(lambda api: api.inspect_service(wanted.name)), wanted)
        except NotFound:
            return self._create(wanted)
        return True

    def _create(self, wanted: Service) -> bool:
        try:
            self.engine.call(
                lambda api: api.create_service(
                    {**wanted.template},
                    name=wanted.name,
                    labels=dict(wanted.labels),
                    endpoint_spec={"Mode": "dnsrr"},
                )
            )
        except APIError as error:
            if error.status_code == 409 and "name conflicts" in str(error.explanation):
                return False
            raise
        return True

    def _change(self, found: Mapping[str, Any], wanted: Service) -> None:
        labels = found["Spec"]["Labels"]
        if any(labels.get(key) != value for key, value in names.labels(self.cluster).items()):
            raise BackendError(f"{wanted.name}: a service of that name is there, and is not this cluster's. Remove it.")
        if labels.get(names.SPEC) != wanted.labels[names.SPEC] or halted(found):
            self._update(found, wanted.template, wanted.labels, False)

    def _update(
        self,
        found: Mapping[str, Any],
        template: Mapping[str, Any],
        labels: Mapping[str, str],
        force: bool,
        mode: Mapping[str, Any] | None = None,
    ) -> None:
        """`force` starts the task anew though nothing of it differs; the engine's own mode is one task."""
        count = found["Spec"]["TaskTemplate"].get("ForceUpdate", 0) + int(force)
        self.engine.call(
            lambda api: api.update_service(
                found["ID"],
                found["Version"]["Index"],
                {**template, "ForceUpdate": count},
                name=found["Spec"]["Name"],
                labels=dict(labels),
                endpoint_spec={"Mode": "dnsrr"},
                mode=mode,
            )
        )

    def restart(self, hostname: str) -> None:
        """Start a task anew, whatever it does now.

        Raises:
            BackendError: the engine refuses it.
        """
        self._insist(hostname, None)

    def halt(self, hostname: str, seconds: float) -> None:
        """Have a service without a task, until `restart`; wait so long until its container has ended."""
        self._insist(hostname, _NONE)
        identity = one_of(self.services(), self.cluster, hostname)["ID"]
        wait_for(lambda: not self._ending([identity]), f"the container of {hostname} did not end", seconds)

    def _insist(self, hostname: str, mode: Mapping[str, Any] | None) -> None:
        insist(hostname, lambda: self._forced(one_of(self.services(), self.cluster, hostname), mode))

    def _forced(self, found: Mapping[str, Any], mode: Mapping[str, Any] | None = None) -> bool:
        self._update(found, found["Spec"]["TaskTemplate"], found["Spec"]["Labels"], True, mode)
        return True

    def start(self, hostnames: Sequence[str]) -> None:
        """Start tasks anew whose launchers have ended; leave alone those that have not."""
        services, tasks = self.services(), self.tasks()
        for hostname in hostnames:
            found, task = services.get(hostname), tasks.get(hostname)
            if found is not None and (task is None or not task.alive):
                with refusals(f"starting {hostname}"), another_time():
                    self._forced(found)

    def remove(self, *hostnames: str, seconds: float) -> None:
        """Remove services, and wait so long until their containers have ended."""
        found = [item["ID"] for hostname, item in self.services().items() if hostname in hostnames]
        for identity in found:
            self.engine.gone(lambda api, identity=identity: api.remove_service(identity))  # type: ignore[misc]
        if found:
            wait_for(lambda: not self._ending(found), f"the containers of {', '.join(hostnames)} did not end", seconds)

    def came(self, wanted: Service) -> bool:
        """Whether the service's task runs as it should be, and none runs as it was before."""
        found = self.services().get(wanted.labels[names.HOSTNAME])
        live = [task for task in self._tasks_of([found["ID"]]) if task["Status"]["State"] not in _OVER] if found else []
        specs = [task["Spec"]["ContainerSpec"]["Labels"].get(names.SPEC) for task in live]
        return specs == [wanted.labels[names.SPEC]] and live[0]["Status"]["State"] == "running"

    def over(self, hostname: str) -> bool:
        """Whether all tasks of a service have ended, on the machines that answer."""
        found = self.services().get(hostname)
        return found is None or (bool(self._tasks_of([found["ID"]])) and not self._ending([found["ID"]]))

    def _tasks_of(self, services: list[str]) -> list[Any]:
        tasks = self.engine.call(lambda api: api.tasks(filters=names.filters(self.cluster)))
        return [task for task in tasks if task["ServiceID"] in services]

    def _ending(self, services: list[str]) -> list[Any]:
        """Tasks of removed services that still live."""
        lost = {node["ID"] for node in self.engine.call(lambda api: api.nodes()) if node["Status"]["State"] != "ready"}
        return [
            task
            for task in self._tasks_of(services)
            if task["Status"]["State"] not in _OVER and task.get("NodeID") not in lost
        ]

    def tasks(self) -> Mapping[str, EngineTask]:
        """Hostname to what the engine says of its newest task; services that have none yet are scheduled."""
        return {hostname: _engine_task(found) for hostname, found in self._history().items()}

    def fate(self, hostname: str) -> tuple[EngineTask | None, Sequence[Mapping[str, Any]]]:
        """What `tasks` says of one service, None where there is none; and its tasks that could not start or ended badly, the
        newest last."""
        found = self._history().get(hostname)
        if found is None:
            return None, []
        return _engine_task(found), [task for task in found if task["Status"]["State"] in ("failed", "rejected")]

    def _history(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Hostname to the tasks of its service, the newest last."""
        services = {item["ID"]: hostname for hostname, item in self.services().items()}
        tasks: dict[str, list[Mapping[str, Any]]] = {hostname: [] for hostname in services.values()}
        for item in self.engine.call(lambda api: api.tasks(filters=names.filters(self.cluster))):
            if item["ServiceID"] in services:
                tasks[services[item["ServiceID"]]].append(item)
        return {hostname: sorted(found, key=_created) for hostname, found in tasks.items()}


def one_of(services: Mapping[str, Any], cluster: Cluster, hostname: str) -> Any:
    """What there is of one task.

    Raises:
        errors.NotFound: nothing.
    """
    if hostname not in services:
        raise errors.NotFound(
            f"{hostname} of {cluster['name']} has no service. `pulumi up --refresh` makes it again, unless the cluster was destroyed."
        )
    return services[hostname]


def halted(service: Mapping[str, Any]) -> bool:
    """Whether a service has no task, as `halt` leaves it."""
    replicas = service["Spec"].get("Mode", {}).get("Replicated", {}).get("Replicas", 1)
    return bool(replicas == 0)


def _created(item: Mapping[str, Any]) -> str:
    return str(item["CreatedAt"])


def _engine_task(found: Sequence[Mapping[str, Any]]) -> EngineTask:
    """What the tasks of a service, oldest first, come to. One that Swarm tries again after it was rejected still is."""
    if not found:
        return EngineTask(True, "", "scheduled")
    again = len(found) > 1 and found[-1]["Status"]["State"] in _WORDS and found[-2]["Status"]["State"] == "rejected"
    status = found[-2 if again else -1]["Status"]
    word = _WORDS.get(status["State"], status["State"])
    container = status.get("ContainerStatus", {}).get("ContainerID", "")[:12]
    reason = status.get("Err", "") if word != "complete" else ""
    return EngineTask(status["State"] not in _OVER, container, word, reason)
