"""What a user learns who may not do everything in a namespace, or whose cluster lacks an object."""

import http.client
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from websocket import WebSocketBadStatusException

from tests.unit.backends.kubernetes.stored_api import CLUSTER, HOME, OBJECTS, StoredApi, server
from tests.unit.backends.kubernetes.test_drift import SILENT, WORKER, made, pod
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.kubernetes import discover, exec, task_access
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.controller_client import _token
from tfdeploy.backends.kubernetes.discover import discover_clusters
from tfdeploy.backends.kubernetes.exec import PodCommand
from tfdeploy.backends.kubernetes.task_access import KubernetesAccess
from tfdeploy.backends.kubernetes.task_runner import KubernetesTaskRunner
from tfdeploy.errors import BackendError, Forbidden, Unreachable

__all__ = ["server"]

RUNNER = KubernetesTaskRunner()
ACCESS = KubernetesAccess(RUNNER)


def test_who_may_only_look_sees_the_cluster_and_learns_what_not(
    server: StoredApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
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
