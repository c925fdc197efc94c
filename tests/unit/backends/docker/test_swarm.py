"""Services are created, updated, scaled and restarted; conflicts and missing services."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

import pytest
from docker.errors import APIError

from tests.unit.props import task_props
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker import task_access
from tfdeploy.backends.docker.engine import engine
from tfdeploy.backends.docker.engine.engine import Engine, retry_conflicts
from tfdeploy.backends.docker.swarm import services
from tfdeploy.backends.docker.swarm.swarm import Swarm, is_scaled_to_zero
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.errors import BackendError, NotFound, Unreachable

PROPS = task_props(hostname="worker-0", index=0)
CLUSTER: ClusterRef = PROPS["cluster"]


class Api:
    """The engine and the part of its API that updates services."""

    def __init__(self, *existing: dict[str, Any]) -> None:
        self.existing = list(existing)
        self.updates: list[dict[str, Any]] = []

    def call(self, request: Callable[[Any], Any]) -> Any:
        return request(self)

    def call_once(self, request: Callable[[Any], Any]) -> Any:
        return request(self)

    def services(self, filters: Any) -> list[dict[str, Any]]:
        return self.existing

    def inspect_service(self, name: str) -> dict[str, Any]:
        return self.existing[0]

    def update_service(self, *args: Any, **kwargs: Any) -> None:
        self.updates.append(kwargs)


def service(mode: dict[str, Any]) -> dict[str, Any]:
    """The task's service in the form of the Engine API."""
    desired = services.task_service(PROPS)
    spec = {"Name": desired.name, "Labels": dict(desired.labels), "TaskTemplate": dict(desired.template), "Mode": mode}
    return {"ID": "1", "Version": {"Index": 7}, "Spec": spec}


def swarm(api: Api) -> Swarm:
    return Swarm(cast(Engine, api), CLUSTER)


@pytest.mark.parametrize(("replicas", "updates"), [(1, 0), (0, 1)])
def test_a_service_without_a_task_is_updated_even_if_its_definition_is_the_same(replicas: int, updates: int) -> None:
    api = Api(service({"Replicated": {"Replicas": replicas}}))
    swarm(api).apply(services.task_service(PROPS))
    assert len(api.updates) == updates
    assert all(update["mode"] is None for update in api.updates)


def test_only_a_service_with_no_replicas_is_scaled_to_zero() -> None:
    modes: list[dict[str, Any]] = [{}, {"Replicated": {}}, {"GlobalJob": {}}, {"Replicated": {"Replicas": 0}}]
    assert [is_scaled_to_zero(service(mode)) for mode in modes] == [False, False, False, True]


@pytest.mark.parametrize(("replicas", "exists"), [(1, True), (0, False)])
def test_a_refresh_sees_that_a_service_has_no_task(replicas: int, exists: bool) -> None:
    api = Api(service({"Replicated": {"Replicas": replicas}}))
    runner = DockerTaskRunner(engine=lambda cluster: cast(Engine, api))
    assert runner.task_exists(PROPS) is exists


def test_a_service_that_was_removed_meanwhile_is_not_found() -> None:
    empty = swarm(Api())
    for action in (empty.restart, lambda hostname: empty.scale_to_zero(hostname, 1.0)):
        with pytest.raises(NotFound, match=r"worker-0 of mnist"):
            action("worker-0")


@pytest.mark.parametrize(("conflicts", "attempts"), [(2, 3), (99, 10)])
def test_an_update_is_retried_after_a_conflict(conflicts: int, attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def update() -> bool:
        calls.append("update")
        if len(calls) <= conflicts:
            raise APIError("500", explanation="rpc error: code = Unknown desc = update out of sequence")
        return True

    monkeypatch.setattr(engine, "_UPDATE_PAUSE", 0.0)
    with nullcontext() if attempts > conflicts else pytest.raises(BackendError, match="m0: something else updates it"):
        retry_conflicts("m0", update)
    assert len(calls) == attempts


def test_a_refused_update_is_not_retried() -> None:
    def update() -> bool:
        raise APIError("400", explanation="not so")

    with pytest.raises(BackendError, match="m0: not so"):
        retry_conflicts("m0", update)


class Failing:
    """A Swarm that restarts a task only after some failures."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def restart(self, hostname: str) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise Unreachable("the engine does not respond")


def test_starting_a_stopped_task_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_access, "_START_PAUSE", 0.0)
    start_again: Any = task_access._start_again
    start_again(Failing(3), "worker-0")
    with pytest.raises(BackendError, match=r"worker-0 .* does not respond. .*`tfdeploy restart worker-0`"):
        start_again(Failing(100), "worker-0")
