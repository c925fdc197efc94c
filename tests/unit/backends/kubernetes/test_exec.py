"""A command in a pod: refused, or on a node that does not respond any more."""

import http.client
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from websocket import WebSocketBadStatusException

from tests.unit.backends.kubernetes.stored_api import HOME, OBJECTS, SILENT, StoredApi, pod
from tfdeploy.backends.kubernetes import exec
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.exec import PodCommand
from tfdeploy.errors import Forbidden, Unreachable


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
