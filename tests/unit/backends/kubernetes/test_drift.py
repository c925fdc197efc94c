"""Each object of a cluster is deleted or spoilt in turn: it is named, and made again, and nothing else is touched. What a user
learns who may not do everything in a namespace, or whose cluster lacks an object."""

import http.client
import json
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from websocket import WebSocketBadStatusException

from tests.unit.backends.kubernetes.stored_api import CLUSTER, HOME, OBJECTS, StoredApi, server
from tests.unit.props import run_props, task_props
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends import controller_calls
from tfdeploy.backends.base import CONTROLLER, RunProps, TaskProps
from tfdeploy.backends.kubernetes import cleanup, discover, exec, resources, task_access
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.cluster_objects import ClusterObjects
from tfdeploy.backends.kubernetes.controller_client import PodController, _token
from tfdeploy.backends.kubernetes.discover import discover_clusters
from tfdeploy.backends.kubernetes.drift import repair
from tfdeploy.backends.kubernetes.exec import PodCommand
from tfdeploy.backends.kubernetes.labels import HOSTNAME_LABEL, ID_LABEL, object_name, prefix
from tfdeploy.backends.kubernetes.pods import PodMount, PodSettings, controller_set
from tfdeploy.backends.kubernetes.resources import PodObjectsProvider, claim
from tfdeploy.backends.kubernetes.task_access import KubernetesAccess
from tfdeploy.backends.kubernetes.task_runner import KubernetesTaskRunner
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError, Forbidden, Unreachable

__all__ = ["server"]

RUNNER, PROVIDER = KubernetesTaskRunner(), PodObjectsProvider()
OWN, RECORD = prefix(CLUSTER), object_name(CLUSTER, "record")
WORKER, CONTROLLERS = object_name(CLUSTER, "worker-1"), object_name(CLUSTER, CONTROLLER)
PROPS: dict[str, Any] = {
    "cluster": CLUSTER,
    "token": "a-token",
    "secrets": {"KEY": "a-value"},
    "claims": [claim(CLUSTER, "record", "1Gi", "ReadWriteOnce", "")],
    "kubeconfig": "",
}


def made() -> tuple[dict[str, Any], TaskProps, RunProps]:
    """The props of the shared objects, of worker-1 and of the run, which all exist then."""
    shared = PROVIDER.create(PROPS).outs
    assert shared is not None
    depends = {"agent": shared["agent"], "token": object_name(CLUSTER, "token"), "secrets": shared["secrets_name"]}
    own = {"cluster": CLUSTER, "token": "a-token", "dependencies": depends}
    settings = PodSettings("an-image", mounts=(PodMount("of-the-user", "/data"),))
    task = cast(TaskProps, {**task_props(), **own, "container": settings.to_dict()})
    run = cast(RunProps, {**run_props(), **own, "container": PodSettings("an-image", record=RECORD).to_dict()})
    RUNNER.create_task(task)
    OBJECTS.apply(controller_set(run))
    return shared, task, run


def missing() -> list[str]:
    return list(RUNNER.missing(CLUSTER, ["worker-1", CONTROLLER], {}))


def exists(shared: dict[str, Any], task: TaskProps) -> dict[str, bool]:
    """What `pulumi refresh` finds."""
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
    """The kind and the name of an object."""
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


def pod(name: str, **status: Any) -> dict[str, Any]:
    """A pod of worker-1."""
    labels = {**OBJECTS_LABELS, HOSTNAME_LABEL: "worker-1"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "node-2"}, "status": status}


OBJECTS_LABELS = {"tfdeploy/cluster-id": CLUSTER["id"]}
CREATES = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}
SILENT = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "False"}],
    "containerStatuses": [{"state": {"running": {}}}],
}


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


@pytest.mark.parametrize("retains", [True, False])
def test_only_the_checkpoints_are_retained_and_only_if_requested(server: StoredApi, retains: bool) -> None:
    made()
    OBJECTS.create(claim(CLUSTER, "train", "1Gi", "ReadWriteMany", ""))
    text = cleanup.remove_all(OBJECTS, 1.0, retain_checkpoints=retains)
    train = object_name(CLUSTER, "train")
    assert list(server.objects) == ([OBJECTS.path("PersistentVolumeClaim", train)] if retains else [])
    assert (f"kubectl --namespace training delete pvc {train}" in text) is retains


def test_a_pod_on_a_silent_node_is_not_waited_for_but_named(server: StoredApi, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    server.put(OBJECTS.path("Pod", "p"), pod("p", **SILENT))
    assert "worker-1 on node-2" in cleanup.remove_all(OBJECTS, 1.0, retain_checkpoints=False)
    server.item("Pod", "p")["status"] = {"phase": "Running"}
    monkeypatch.setattr(controller_calls, "is_cancelled", lambda: True)
    with pytest.raises(BackendError, match="the pods of worker-1 did not end"):
        cleanup.remove_all(OBJECTS, 0.0, retain_checkpoints=False)


def test_a_claim_that_a_silent_node_holds_is_named_with_the_node(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    made()
    server.put(OBJECTS.path("Pod", "p"), pod("p", **SILENT))
    server.held = {OBJECTS.path("PersistentVolumeClaim", RECORD)}
    monkeypatch.setattr(cleanup, "_SECONDS", 0.0)
    with pytest.raises(BackendError, match=f"Claim {RECORD} .*worker-1 on node-2.*kubectl delete node.*destroy` again"):
        cleanup.remove_all(OBJECTS, 1.0, retain_checkpoints=False)


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


ACCESS = KubernetesAccess(RUNNER)


def test_who_may_only_look_sees_the_cluster_and_learns_what_not(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    made()
    _token.cache_clear()
    server.forbidden = {"secrets"}
    (found,) = discover_clusters(HOME)
    assert (found.cluster["id"], found.cluster["name"], "secret" in found.has) == (CLUSTER["id"], "mnist", False)
    observed = RUNNER.observe(CLUSTER, "", ViewRequest(), is_preview=True)
    assert observed.engine
    assert observed.engine["worker-1"].alive
    (problem,) = observed.problems
    assert "cannot be called" in problem
    assert "secrets" in problem
    with pytest.raises(Forbidden, match=r"secrets/\S+ is forbidden\. docs/kubernetes-role.yaml"):
        ACCESS.execute(CLUSTER, "worker-1", ["true"])
    monkeypatch.setattr(discover, "KINDS", {"Secret": "/api/v1"})
    with pytest.raises(Forbidden, match="you may not list"):
        discover_clusters(HOME)


@pytest.mark.parametrize(("status", "error"), [(403, Forbidden), (500, Unreachable)])
def test_a_command_that_is_refused_names_the_role(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise WebSocketBadStatusException("Handshake status %d %s", status, http.client.responses[status])

    monkeypatch.setattr(exec, "WSClient", refuse)
    monkeypatch.setattr(ApiServer, "client", type("Client", (), {"configuration": None}))
    monkeypatch.setattr(ApiServer, "authorization", lambda _: {})
    with pytest.raises(error) as raised:
        PodCommand(ApiServer(HOME), "a-pod", ["true"])
    assert ("docs/kubernetes-role.yaml" in str(raised.value)) is (status == 403)


def test_no_port_is_forwarded_without_the_right_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_access, "missing", lambda _, permissions: permissions)
    with pytest.raises(Forbidden, match="kubernetes-role"):
        ACCESS.relay(CLUSTER, "worker-1.mnist", 2222)
    monkeypatch.setattr(task_access, "missing", lambda *_: ())
    ACCESS.relay(CLUSTER, "worker-1.mnist", 2222)


def test_a_task_that_could_not_start_again_is_not_restarted(server: StoredApi) -> None:
    made()
    ACCESS.refuse_restart(CLUSTER, "worker-1")
    server.item("Job", WORKER)["spec"]["suspend"] = True
    ACCESS.refuse_restart(CLUSTER, "worker-1")
    OBJECTS.delete("Secret", WORKER)
    with pytest.raises(BackendError, match=f"the Secret {WORKER} is gone. `pulumi up --refresh`"):
        ACCESS.refuse_restart(CLUSTER, "worker-1")


def test_a_command_ends_where_the_node_of_its_pod_does_not_respond(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair()
    stream = SimpleNamespace(_channels={}, sock=SimpleNamespace(sock=ours), is_open=lambda: True)
    stream.update = lambda timeout: stream._channels.update({1: ours.recv(100)})
    monkeypatch.setattr(exec, "WSClient", lambda *_, **__: stream)
    monkeypatch.setattr(exec, "CALL_SECONDS", 0.01)
    monkeypatch.setattr(ApiServer, "client", type("Client", (), {"configuration": None}))
    monkeypatch.setattr(ApiServer, "authorization", lambda _: {})
    command = PodCommand(ApiServer(HOME), "p", ["true"])
    seen = list[str]()

    def get(_: ApiServer, path: str) -> Any:
        seen.append(path)
        if len(seen) == 3:
            theirs.send(b"at last")
        return pod("p", **(SILENT if len(seen) > 4 else {"phase": "Running"}))

    monkeypatch.setattr(ApiServer, "get", get)
    assert command.read() == (1, b"at last")
    with pytest.raises(Unreachable, match="the node node-2 does not respond"):
        command.read()
    assert seen == [OBJECTS.path("Pod", "p")] * 5
    ours.close()
    theirs.close()
