"""Callers without a token keep no one out, and a task keeps out no other."""

import socket
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.unit.agent.served import REPORT, TOKEN, Served, served
from tests.waiting import until
from tfdeploy.agent.control import controller_server
from tfdeploy.agent.transport import connections
from tfdeploy.agent.transport.connections import Connections
from tfdeploy.agent.transport.rpc import task_token

__all__ = ["served"]


def stranger(served: Served, sends: bytes = b"") -> socket.socket:
    """A connection that shows no token."""
    made = socket.create_connection(("127.0.0.1", served.port), 5)
    made.sendall(sends)
    return made


def strangers(served: Served, count: int, sends: bytes = b"") -> list[socket.socket]:
    """So many of them, which all have arrived."""
    made = [stranger(served, sends) for _ in range(count)]
    until(lambda: served.server.connections.strangers == count, "all are connected")
    return made


HEAD = b"POST /sync HTTP/1.1\r\nContent-Length: 9\r\nX-Another: "


@pytest.mark.parametrize("sends", [b"", b"P", HEAD, HEAD + b"x\r\n\r\n"])
def test_callers_without_a_token_keep_no_one_out(served: Served, monkeypatch: pytest.MonkeyPatch, sends: bytes) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 5)
    made = strangers(served, 5, sends)
    with served.client() as client, served.client(task_token(TOKEN, "worker-0")) as launcher:
        for _ in range(3):
            client.call("GET", "/stopped")
            launcher.json("POST", "/sync", REPORT)
        assert served.server.connections.strangers == 4
    made[0].settimeout(5)
    with suppress(ConnectionResetError):
        made[0].recv(1000)  # the response to a body that has not arrived, or nothing
    for connection in made:
        connection.close()
    until(lambda: served.server.connections.strangers == 0, "all are gone")


@pytest.mark.parametrize("sends", [b"", HEAD, HEAD + b"x\r\n\r\n"])
def test_a_caller_without_a_token_has_a_time_for_all_that_it_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: bytes
) -> None:
    monkeypatch.setattr(controller_server, "STRANGER_SECONDS", 0.5)
    served = Served(tmp_path)
    with closing(stranger(served, sends)) as connection:

        def is_closed() -> bool:
            """Whether the connection is closed, although a byte arrives again and again."""
            try:
                connection.sendall(b"x")
            except OSError:
                return True
            return False

        until(is_closed, "the connection is closed")
    served.server.shutdown()
    served.server.server_close()


def test_of_too_many_callers_without_a_token_the_oldest_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 3)
    pairs = {name: socket.socketpair() for name in ("first", "second", "third", "fourth", "fifth")}
    places = Connections()
    for name, (end, _) in pairs.items():
        assert places.admit(end)
        if name == "first":
            assert places.welcome(end), "a caller with a token keeps its place"
    assert {name for name, (_, other) in pairs.items() if is_shut(other)} == {"second"}
    assert not places.welcome(pairs["second"][0])
    for pair in pairs.values():
        for end in pair:
            end.close()


def is_shut(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False


def test_where_all_places_are_taken_a_new_connection_is_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    with served.client(task_token(TOKEN, "worker-0")) as first:
        first.json("POST", "/sync", REPORT)
        with served.client() as second, pytest.raises(ConnectionError):
            second.call("GET", "/stopped")
        first.json("POST", "/sync", REPORT)
    until(lambda: answers(served), "the place is free again")


def answers(served: Served) -> bool:
    with served.client() as user:
        try:
            return bool(user.json("GET", "/stopped"))
        except OSError:
            return False


def test_a_machine_without_threads_refuses_for_a_moment_and_not_for_ever(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each such connection ends. If it was still counted, the server would refuse all others after some."""
    monkeypatch.setattr(connections, "MAX_STRANGERS", 3)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(5):
        with suppress(OSError):  # closed before all was sent
            assert served.raw("GET /stopped HTTP/1.1") == b""
    monkeypatch.setattr(threading.Thread, "start", start)
    with served.client() as client:
        assert client.json("GET", "/stopped") == {"stopped": True}
