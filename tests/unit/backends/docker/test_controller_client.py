"""Calls of the controller: all over one relayed connection, which is replaced when it has ended."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.backends.docker.fake_engine import CONNECTED, TOKEN, FakeEngine, fake_engine, responds
from tests.unit.props import CANARY, task_props
from tfdeploy.agent.wire.rpc import CallError
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker.engine.controller_client import ControllerClient
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.terminal import STDERR, STDOUT
from tfdeploy.errors import Unreachable

LONG = json.dumps({"logs": ["a line"] * 500_000}).encode()
"""More than is read or sent at once, or fits into the buffers of a socket."""

OPENED = ["GET containers/json", "POST containers/1/exec", "POST exec/1/start"]
"""To open the relayed connection."""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeEngine]:
    with fake_engine(tmp_path / "engine.sock", {}) as engine:
        Engine(engine.address).call(lambda api: api.base_url)
        engine.calls.clear()
        yield engine


@pytest.fixture
def controller(fake: FakeEngine) -> ControllerClient:
    return ControllerClient(Engine(fake.address), task_props()["cluster"])


def test_all_clients_of_a_process_share_one_connection(fake: FakeEngine) -> None:
    for _ in range(3):
        ControllerClient(Engine(fake.address), task_props()["cluster"]).json("GET", "/stopped")
    assert fake.calls == [*OPENED, *["GET /stopped"] * 3]
    other = cast(ClusterRef, {**task_props()["cluster"], "name": "another"})
    ControllerClient(Engine(fake.address), other).json("GET", "/stopped")
    assert fake.calls[6:] == [*OPENED, "GET /stopped"]


@pytest.mark.parametrize("data", [b'{"stopped": true}', b"", LONG])
def test_a_response_and_a_body_are_complete(fake: FakeEngine, controller: ControllerClient, data: bytes) -> None:
    fake.controller = responds(data)
    assert [controller.call("PUT", "/code/1", data) for _ in range(2)] == [data, data]
    assert [called.body for called in fake.called] == [data, data]


def test_calls_of_several_threads_do_not_mix(fake: FakeEngine, controller: ControllerClient) -> None:
    fake.controller = lambda handler: responds(handler.path.encode() * 1000)(handler)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: controller.call("GET", f"/{number}"), range(100)))
    assert found == [f"/{number}".encode() * 1000 for number in range(100)]
    assert fake.calls.count("POST exec/1/start") == 1


def test_a_connection_that_has_ended_is_replaced(fake: FakeEngine, controller: ControllerClient) -> None:
    controller.call("GET", "/stopped")
    fake.end_relays()
    fake.responses["GET containers/json"] = [
        {"Id": "2", "Created": 2, "Command": "python3 agent controller /record 10.0.0.7:2220 token"}
    ]
    fake.responses["POST containers/2/exec"] = {"Id": "1"}
    assert controller.call("PUT", "/code/1", LONG) == b"{}"
    assert fake.calls[4:] == ["GET containers/json", "POST containers/2/exec", "POST exec/1/start", "PUT /code/1"]


@pytest.mark.parametrize("head", ["", "Connection: close\r\n"])
def test_a_refusal(fake: FakeEngine, controller: ControllerClient, head: str) -> None:
    fake.controller = responds(b"no such call", 404, head)
    for _ in range(2):
        with pytest.raises(CallError, match=r"^GET /nothing: 404 no such call$"):
            controller.call("GET", "/nothing")
    assert fake.calls.count("POST exec/1/start") == (2 if head else 1)


BEGINS = [
    pytest.param([(STDERR, b"0.0.0.0:2220: "), (STDERR, b"Connection refused\n")], "0.0.0.0:2220: Connection refused"),
    pytest.param([(STDOUT, b'exec: "python3": not found\n')], 'exec: "python3": not found'),
    pytest.param([(STDOUT, CONNECTED[0][1][:-1])], "the command that connects to it has ended"),
    pytest.param([], "the command that connects to it has ended"),
]


@pytest.mark.parametrize(("begin", "reason"), BEGINS)
@pytest.mark.parametrize("was_open", [False, True])
def test_a_command_that_does_not_connect(
    fake: FakeEngine, controller: ControllerClient, begin: list[tuple[int, bytes]], reason: str, was_open: bool
) -> None:
    if was_open:
        controller.call("GET", "/stopped")
        fake.end_relays()
    fake.begin = begin
    for body in (b"", LONG):
        with pytest.raises(Unreachable) as raised:
            controller.call("PUT", "/code/1", body)
        assert str(raised.value) == f"the controller of mnist does not respond ({reason})"
    fake.begin = CONNECTED
    assert controller.call("GET", "/stopped") == b"{}"


@pytest.mark.parametrize(
    "broken",
    [
        lambda _: False,
        lambda handler: handler.output(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{") and False,
        lambda handler: handler.output(b"neither a response nor a token\r\n") and False,
    ],
)
def test_a_controller_that_ends_during_calls(fake: FakeEngine, controller: ControllerClient, broken: Any) -> None:
    controller.call("GET", "/stopped")
    fake.controller = broken
    with pytest.raises(Unreachable, match="the controller of mnist does not respond") as raised:
        controller.json("GET", "/stopped")
    assert TOKEN not in str(raised.value)
    fake.controller = responds(b"{}")
    assert controller.json("GET", "/stopped") == {}


def test_a_run_and_the_token_are_in_no_argument(fake: FakeEngine, controller: ControllerClient) -> None:
    controller.put_run({"env": {"KEY": CANARY}}, "hash", CANARY.encode())
    assert [called.what for called in fake.called] == ["PUT /code/hash", "PUT /run"]
    assert {called.token for called in fake.called} == {TOKEN}
    assert all(CANARY.encode() in called.body for called in fake.called)
    (command,) = fake.commands
    assert CANARY.encode() not in command
    assert TOKEN.encode() not in command
