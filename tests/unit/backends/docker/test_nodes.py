"""What other tasks have reserved on the machines of a Swarm."""

from typing import Any, cast

import pytest

from tests.unit.backends.docker.fake_engine import FakeApi
from tests.unit.props import cluster
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import cluster_labels
from tfdeploy.backends.docker.swarm import nodes


class Tasks(FakeApi):
    """An engine with tasks of this cluster and of a foreign service."""

    def __init__(self, *tasks: dict[str, Any]) -> None:
        self._tasks = tasks

    def services(self) -> list[dict[str, Any]]:
        return [{"ID": "own", "Spec": {"Labels": cluster_labels(cluster())}}, {"ID": "other", "Spec": {"Labels": {}}}]

    def tasks(self, filters: Any) -> Any:
        return self._tasks


@pytest.mark.parametrize(
    ("changed", "cpus"),
    [({}, 2.0), ({"ServiceID": "own"}, 0.0), ({"Status": {"State": "complete"}}, 0.0), ({"NodeID": None}, 0.0)],
)
def test_what_running_tasks_of_others_have_reserved_is_taken(changed: dict[str, Any], cpus: float) -> None:
    reservations = {"Reservations": {"NanoCPUs": 2_000_000_000}}
    task = {"ServiceID": "other", "Status": {"State": "running"}, "NodeID": "n1", "Spec": {"Resources": reservations}}
    given = {name: value for name, value in {**task, **changed}.items() if value is not None}
    reserved = nodes._reserved(cast(Engine, Tasks(given)), cluster())
    assert reserved.get("n1", {"cpus": 0.0})["cpus"] == cpus
