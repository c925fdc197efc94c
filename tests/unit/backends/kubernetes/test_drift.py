"""Each object of a cluster is deleted or spoilt in turn: it is named, and made again, and nothing else is touched."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.backends.kubernetes.stored_api import (
    CLUSTER,
    CONTROLLERS,
    OBJECTS,
    OWN,
    PROPS,
    PROVIDER,
    RECORD,
    RUNNER,
    WORKER,
    StoredApi,
    made,
)
from tfdeploy.backends.base import CONTROLLER, RunProps, TaskProps
from tfdeploy.backends.kubernetes import resources
from tfdeploy.backends.kubernetes.drift import repair
from tfdeploy.backends.kubernetes.labels import object_name
from tfdeploy.backends.kubernetes.pods import controller_set
from tfdeploy.backends.record_copy import RecordCopy


def missing() -> list[str]:
    return list(RUNNER.missing(CLUSTER, ["worker-1", CONTROLLER], {}))


def exists(shared: dict[str, Any], task: TaskProps) -> dict[str, bool]:
    return {
        "objects": PROVIDER.read("id", shared).id is not None,
        "task": RUNNER.task_exists(task),
        "controller": RUNNER.is_whole(CLUSTER, CONTROLLER),
    }


def refresh(shared: dict[str, Any], task: TaskProps, run: RunProps) -> None:
    """`pulumi up --refresh`: what is gone is created."""
    found = exists(shared, task)
    if not found["objects"]:
        PROVIDER.create(PROPS)
    if not found["task"]:
        RUNNER.create_task(task)
    if not found["controller"]:
        OBJECTS.apply(controller_set(run))


ALL = {"objects": True, "task": True, "controller": True}
AGENT, SECRETS = "ConfigMap agent", "Secret secrets"


def named(kind_and_name: str, shared: dict[str, Any]) -> tuple[str, str]:
    names = {AGENT: shared["agent"], SECRETS: shared["secrets_name"]}
    kind, name = kind_and_name.split()
    return kind, names.get(kind_and_name, name)


@pytest.mark.parametrize(
    ("deleted", "of"),
    [
        (f"Service {OWN}", "objects"),
        (f"NetworkPolicy {OWN}", "objects"),
        (f"NetworkPolicy {CONTROLLERS}", "objects"),
        (f"Secret {OWN}-token", "objects controller"),
        (SECRETS, "objects task"),
        (AGENT, "objects task controller"),
        (f"PersistentVolumeClaim {RECORD}", "objects controller"),
        (f"Secret {WORKER}", "task"),
        (f"Job {WORKER}", "task"),
        (f"StatefulSet {CONTROLLERS}", "controller"),
    ],
)
def test_what_is_deleted_is_named_and_made_again(server: StoredApi, deleted: str, of: str) -> None:
    shared, task, run = made()
    before = {path: item["metadata"]["uid"] for path, item in server.objects.items()}
    assert (missing(), exists(shared, task)) == ([], ALL)
    kind, name = named(deleted, shared)
    OBJECTS.delete(kind, name)
    assert missing() == [f"the {kind} {name}"]
    assert exists(shared, task) == {**ALL, **dict.fromkeys(of.split(), False)}
    server.calls.clear()
    refresh(shared, task, run)
    assert (missing(), exists(shared, task)) == ([], ALL)
    assert {path: item["metadata"]["uid"] for path, item in server.objects.items()} == before
    assert not [call for call in server.calls if call.startswith("DELETE")]


def change(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(item: dict[str, Any]) -> None:
        for key in keys[:-1]:
            item = item[key]
        item[keys[-1]] = value

    return apply


FAILED = [
    {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than 5 s"}
]


@pytest.mark.parametrize(
    ("spoilt", "how", "of"),
    [
        (f"Service {OWN}", change("spec", "selector", "app", value="other"), "objects"),
        (f"Service {OWN}", change("spec", "clusterIP", value="10.0.0.1"), "objects"),
        (f"Service {OWN}", change("spec", "ports", value=[{"name": "tensorflow", "port": 1}]), "objects"),
        (f"NetworkPolicy {OWN}", change("spec", "ingress", value=[]), "objects"),
        (f"Secret {OWN}-token", change("data", "token", value="b3RoZXI="), "objects"),
        (SECRETS, change("data", "KEY", value="b3RoZXI="), "objects"),
        (f"Secret {WORKER}", change("data", value={}), "task"),
        (f"Job {WORKER}", change("status", "conditions", value=FAILED), "task"),
        (f"Job {WORKER}", change("spec", "suspend", value=True), "task"),
    ],
)
def test_what_is_spoilt_is_made_as_it_was(
    server: StoredApi, spoilt: str, how: Callable[[dict[str, Any]], None], of: str
) -> None:
    shared, task, run = made()
    kind, name = named(spoilt, shared)
    before = json.dumps(server.item(kind, name))
    how(server.item(kind, name))
    assert exists(shared, task) == {**ALL, of: False}
    refresh(shared, task, run)
    assert exists(shared, task) == ALL
    assert json.loads(json.dumps(server.item(kind, name))) == json.loads(before)


def test_a_job_that_can_start_no_pod_says_why_but_kueue_suspends_one_that_waits(server: StoredApi) -> None:
    assert len(object_name({**CLUSTER, "name": "a" * 40}, CONTROLLER) + "-0123456789") <= 63, "a label with its hash"
    made()
    job = server.item("Job", WORKER)
    job["spec"]["suspend"], job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = True, "team"
    assert missing() == []
    job["spec"]["suspend"], job["status"]["conditions"] = False, FAILED
    assert missing() == [f"the Job {WORKER} (DeadlineExceeded: Job was active longer than 5 s)"]
    assert RUNNER.objects(CLUSTER).tasks()["worker-1"][:1] == (False,)
    server.forbidden = {"secrets"}
    job["status"]["conditions"] = []
    OBJECTS.delete("Service", OWN)
    assert missing() == [f"the Service {OWN}"], "what may not be listed is not called missing"


def test_the_defaults_of_the_server_are_no_difference() -> None:
    desired = {"spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}}
    assert (
        repair({"spec": {"ports": [{"port": 1, "protocol": "TCP"}], "selector": {"a": "b"}, "more": 1}}, desired) == {}
    )
    assert repair({"spec": {"ports": [], "selector": {"c": "d"}}}, desired) == {
        "spec": {"ports": [{"port": 1}], "selector": {"a": "b", "c": None}}
    }


def test_a_claim_that_is_being_deleted_ends_with_the_controller(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, task, run = made()
    copied: list[str] = []
    monkeypatch.setattr(RecordCopy, "download", lambda *_: copied.append("copied"))
    server.item("PersistentVolumeClaim", RECORD)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert missing() == [f"the PersistentVolumeClaim {RECORD}"]

    def released(step: Callable[[], bool], *_: Any) -> None:
        assert not step(), "it waits"
        assert copied
        assert OBJECTS.read("StatefulSet", CONTROLLERS) is None
        OBJECTS.delete("PersistentVolumeClaim", RECORD)
        assert step()

    monkeypatch.setattr(resources, "wait_for", released)
    refresh(shared, task, run)
    assert (missing(), exists(shared, task)) == ([], ALL)
