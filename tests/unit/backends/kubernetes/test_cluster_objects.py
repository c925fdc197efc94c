"""The objects of a cluster: what is created again or started, and why a pod is not created."""

from typing import Any

import pytest

from tests.unit.backends.kubernetes.stored_api import CLUSTER, OBJECTS, WORKER, StoredApi, made, pod
from tfdeploy.backends.kubernetes.cluster_objects import ClusterObjects
from tfdeploy.backends.kubernetes.labels import ID_LABEL

CREATES = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (["Job FailedCreate", "Job Other", "Job FailedCreate"], ("starting", "FailedCreate: 2")),
        (["Job FailedCreate", "Pod FailedScheduling", "Pod FailedMount"], ("starting", "FailedMount: 2")),
        (["Job FailedCreate", "Pod FailedScheduling"], ("starting", "")),
        (["Pod FailedMount", "Pod Pulling"], ("pulling", "")),
        (["Pod Pulling", "Pod FailedMount"], ("starting", "FailedMount: 1")),
    ],
)
def test_the_newest_event_says_why_a_pod_or_its_container_is_not_created(
    server: StoredApi, events: list[str], expected: tuple[str, str]
) -> None:
    made()
    paths = {"Job": OBJECTS.path("Job", WORKER), "Pod": OBJECTS.path("Pod", "p")}
    if events[-1].startswith("Pod"):
        server.put(paths["Pod"], pod("p", **CREATES))
    for number, (kind, reason) in enumerate(map(str.split, events)):
        about = {"involvedObject": {"uid": f"of {paths[kind]}"}, "lastTimestamp": f"2026-01-0{number + 1}"}
        event = {"metadata": {}, "reason": reason, "message": str(number), **about}
        server.put(f"/api/v1/namespaces/training/events/{number}", event)
    task = OBJECTS.tasks()["worker-1"]
    assert (task.state, task.reason) == expected


def test_tasks_are_started_whose_launcher_has_ended(server: StoredApi, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    OBJECTS.start_ended(["worker-1", "worker-7"])
    assert not [call for call in server.calls if call.startswith("DELETE")]
    server.item("Job", WORKER)["status"]["succeeded"] = 1
    OBJECTS.start_ended(["worker-1"])
    assert "succeeded" not in server.item("Job", WORKER)["status"]
    monkeypatch.setattr(ClusterObjects, "tasks", lambda _: {})  # it was deleted meanwhile
    OBJECTS.start_ended(["worker-1"])


@pytest.mark.parametrize("when", ["while it is being deleted", "at the change"])
def test_a_secret_that_ends_meanwhile_is_created_again(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    path = OBJECTS.path("Secret", "of-a-task")
    labels = {ID_LABEL: CLUSTER["id"]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-a-task", "labels": labels}, "data": {}}
    server.put(path, {**secret, "data": {"token": "old"}})
    if when == "while it is being deleted":
        server.objects[path]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    respond = server._respond

    def ends(method: str, target: str, query: Any, body: Any) -> tuple[int, Any]:
        if method == "PATCH":
            server.objects.pop(target, None)
        return respond(method, target, query, body)

    monkeypatch.setattr(server, "_respond", ends)
    OBJECTS.apply({**secret, "data": {"token": "new"}})
    assert server.objects[path]["data"] == {"token": "new"}
    assert "deletionTimestamp" not in server.objects[path]["metadata"]
