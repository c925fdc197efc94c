"""The task runner: which tasks are deleted or updated, and which nodes do not respond."""

from typing import cast

import pytest

from tests.unit.backends.kubernetes.stored_api import (
    CLUSTER,
    CONTROLLERS,
    OBJECTS,
    RUNNER,
    WORKER,
    StoredApi,
    made,
    pod,
)
from tfdeploy.backends import controller_calls
from tfdeploy.backends.base import TaskProps
from tfdeploy.backends.kubernetes.controller_client import PodController


def test_only_tasks_that_are_not_listed_are_deleted(server: StoredApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller is no task, and a cluster without it has no run to stop."""
    made()
    stops = iter([True])
    requested: list[object] = []
    monkeypatch.setattr(PodController, "json", lambda *words: requested.append(words[1:]))
    monkeypatch.setattr(PodController, "last_known_run", lambda _: None)
    monkeypatch.setattr(controller_calls, "stop", lambda *_: next(stops))
    before = {*server.objects}
    RUNNER.delete_unlisted(CLUSTER, "a-token", ["worker-1"])
    assert {*server.objects} == before
    RUNNER.delete_unlisted(CLUSTER, "a-token", [])
    assert before - {*server.objects} == {OBJECTS.path("Job", WORKER), OBJECTS.path("Secret", WORKER)}
    assert requested == [("POST", "/stop", {"hostnames": ["worker-1"]})]
    assert RUNNER.end_run(CLUSTER)
    OBJECTS.delete("StatefulSet", CONTROLLERS)
    assert RUNNER.end_run(CLUSTER)
    assert not [*stops]


def test_an_update_without_a_change_waits_for_no_turn(server: StoredApi, monkeypatch: pytest.MonkeyPatch) -> None:
    _, task, _ = made()
    at_once: list[bool] = []
    monkeypatch.setattr(RUNNER, "update", lambda *arguments: at_once.append(arguments[3]))
    RUNNER.update_task(task, task)
    RUNNER.update_task(task, cast(TaskProps, {**task, "limits": {"memory": 7}}))
    OBJECTS.delete("Job", WORKER)
    RUNNER.update_task(task, task)
    assert at_once == [True, False, True]


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [("Ready", "Unknown", ["node-2"]), ("Ready", "True", []), ("DiskPressure", "Unknown", [])],
)
def test_a_node_is_unreachable_where_kubernetes_does_not_know_whether_it_is_ready(
    server: StoredApi, kind: str, status: str, expected: list[str]
) -> None:
    server.put(OBJECTS.path("Pod", "p"), pod("p", phase="Running"))
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": kind, "status": status}]
    server.put("/api/v1/nodes/node-2", {"metadata": {"name": "node-2"}, "status": {"conditions": conditions}})
    observed = RUNNER.observe_machines(CLUSTER)
    assert [*observed.remedies] == expected
