"""A service that was left without a task, and one that is gone while something is done to it."""

from contextlib import nullcontext
from typing import Any, cast

import pytest
from docker.errors import APIError

from tests.unit.props import task_props
from tfdeploy.backends import docker
from tfdeploy.backends.base import Cluster
from tfdeploy.backends.docker import access, engine, services
from tfdeploy.backends.docker.engine import Engine, insist
from tfdeploy.backends.docker.swarm import Swarm, halted
from tfdeploy.errors import BackendError, NotFound, Unreachable

PROPS = task_props(hostname="worker-0", index=0)
CLUSTER: Cluster = PROPS["cluster"]


class Api:
    """The engine's API as far as a service is changed by it."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.found = list(found)
        self.updates: list[dict[str, Any]] = []

    def call(self, work: Any) -> Any:
        return work(self)

    def services(self, filters: Any) -> list[dict[str, Any]]:
        return self.found

    def inspect_service(self, name: str) -> dict[str, Any]:
        return self.found[0]

    def update_service(self, *about: Any, **more: Any) -> None:
        self.updates.append(more)


def service(mode: dict[str, Any]) -> dict[str, Any]:
    """The service of the task, as the engine gives it."""
    made = services.task(PROPS)
    spec = {"Name": made.name, "Labels": dict(made.labels), "TaskTemplate": dict(made.template), "Mode": mode}
    return {"ID": "1", "Version": {"Index": 7}, "Spec": spec}


def swarm(api: Api) -> Swarm:
    return Swarm(cast(Engine, api), CLUSTER)


@pytest.mark.parametrize(("replicas", "updates"), [(1, 0), (0, 1)])
def test_a_service_without_a_task_gets_one_though_nothing_else_differs(replicas: int, updates: int) -> None:
    api = Api(service({"Replicated": {"Replicas": replicas}}))
    swarm(api).ensure(services.task(PROPS))
    assert len(api.updates) == updates
    assert all(one["mode"] is None for one in api.updates)


def test_only_a_service_without_a_task_is_halted() -> None:
    modes: list[dict[str, Any]] = [{}, {"Replicated": {}}, {"GlobalJob": {}}, {"Replicated": {"Replicas": 0}}]
    assert [halted(service(mode)) for mode in modes] == [False, False, False, True]


@pytest.mark.parametrize(("replicas", "stands"), [(1, True), (0, False)])
def test_a_refresh_sees_that_a_service_has_no_task(
    replicas: int, stands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "_swarm", lambda cluster: swarm(Api(service({"Replicated": {"Replicas": replicas}}))))
    assert docker.BACKEND.standing(PROPS) is stands


def test_what_is_destroyed_meanwhile_is_not_found() -> None:
    gone = swarm(Api())
    for work in (gone.restart, lambda hostname: gone.halt(hostname, 1.0)):
        with pytest.raises(NotFound, match="worker-0 of mnist has no service"):
            work("worker-0")


@pytest.mark.parametrize(("changes", "tries"), [(2, 3), (99, 10)])
def test_what_somebody_else_has_changed_is_looked_at_again(
    changes: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def change() -> bool:
        looks.append("look")
        if len(looks) <= changes:
            raise APIError("500", explanation="rpc error: code = Unknown desc = update out of sequence")
        return True

    monkeypatch.setattr(engine, "_PAUSE", 0.0)
    with nullcontext() if tries > changes else pytest.raises(BackendError, match="m0: somebody else changes it"):
        insist("m0", change)
    assert len(looks) == tries


def test_a_no_of_the_engine_is_not_asked_for_again() -> None:
    def change() -> bool:
        raise APIError("400", explanation="not so")

    with pytest.raises(BackendError, match="m0: not so"):
        insist("m0", change)


class Failing:
    """A Swarm that restarts a task only after so many failures."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def restart(self, hostname: str) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise Unreachable("the engine does not answer")


def test_a_task_that_was_halted_is_started_however_often_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_PAUSE", 0.0)
    bring_back: Any = access._bring_back
    bring_back(Failing(3), "worker-0")
    told = "worker-0 is stopped, and was not started again: the engine does not answer. `tfdeploy restart worker-0` starts it."
    with pytest.raises(BackendError) as refused:
        bring_back(Failing(100), "worker-0")
    assert str(refused.value) == told
