"""Connections are shared by address, and only idempotent calls are retried."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
import requests

from tfdeploy.backends.docker.engine import connection
from tfdeploy.backends.docker.engine.engine import Engine, is_open_tcp
from tfdeploy.errors import SpecError, Unreachable

ADDRESS = "tcp://engine.example.com:2376"


class Client:
    """The SDK's client; a stale one fails at every call."""

    def __init__(self, address: str, **_: Any) -> None:
        self.address = self.base_url = address
        self.is_stale = False
        self.calls = 0

    def get(self, url: str, params: dict[str, str], timeout: float) -> Any:
        """Volumes of which one is of another driver, and one was not measured."""
        assert (url, params, timeout) == (f"{self.address}/system/df", {"type": "volume"}, 1.0)
        if self.is_stale:
            raise requests.Timeout("Read timed out.")
        volumes = [{"Name": "a", "UsageData": {"Size": 7}}, {"Name": "b", "UsageData": {"Size": -1}}, {"Name": "c"}]
        return SimpleNamespace(json=lambda: {"Volumes": volumes})

    def ping(self) -> bool:
        return self.create()

    def create(self) -> bool:
        if self.is_stale:
            raise requests.ConnectionError("reset by peer")
        self.calls += 1
        return True


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    connected: list[Client] = []

    def connect(address: str, **options: Any) -> Client:
        connected.append(Client(address, **options))
        return connected[-1]

    monkeypatch.setattr(docker, "APIClient", connect)
    monkeypatch.setattr(connection, "_CONNECTIONS", {})
    return connected


@pytest.mark.parametrize(("swarm", "swarm_id"), [({"Cluster": {"ID": "s1"}}, "s1"), ({"Cluster": None}, ""), ({}, "")])
def test_a_place_has_the_ids_of_the_engine_and_of_its_swarm(
    monkeypatch: pytest.MonkeyPatch, swarm: dict[str, Any], swarm_id: str
) -> None:
    monkeypatch.setattr(Client, "info", lambda _: {"ID": "e1", "Name": "m1", "Swarm": swarm}, raising=False)
    assert Engine(ADDRESS).place() == {"id": "e1", "name": "m1", **({"swarm": swarm_id} if swarm_id else {})}


@pytest.mark.parametrize(
    ("swarm", "problem"),
    [
        ({"LocalNodeState": "active"}, "is a worker of its Swarm, not a manager. Set docker.host to a manager."),
        ({}, f"is not in swarm mode. Run `docker --host {ADDRESS} swarm init --advertise-addr 127.0.0.1`."),
    ],
)
def test_an_engine_that_manages_no_swarm_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, swarm: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr(Client, "info", lambda _: {"Swarm": swarm}, raising=False)
    with pytest.raises(SpecError, match=re.escape(f"docker.host: the Docker engine at {ADDRESS} {problem}")):
        Engine(ADDRESS).swarm_info()


def test_an_idempotent_call_is_retried_on_a_new_connection(clients: list[Client]) -> None:
    engine = Engine(ADDRESS)
    engine.call(lambda api: api.ping())
    clients[0].is_stale = True
    assert engine.call(lambda api: api.create())
    assert [client.calls for client in clients] == [1, 1]


def test_a_call_that_is_not_idempotent_is_made_once(clients: list[Client]) -> None:
    engine = Engine(ADDRESS)
    engine.call(lambda api: api.ping())
    clients[0].is_stale = True
    assert engine.call_once(lambda api: api.create()), "a stale connection is replaced before the call"
    attempts: list[Any] = []

    def fail(api: Any) -> None:
        attempts.append(api)
        raise requests.ConnectionError("reset by peer")

    with pytest.raises(Unreachable):
        engine.call_once(fail)
    assert len(attempts) == 1


@pytest.mark.parametrize(
    ("address", "environment", "is_open"),
    [
        ("tcp://10.0.0.1:2375", {}, True),
        ("tcp://10.0.0.1:2376", {"DOCKER_TLS_VERIFY": "1"}, False),
        ("tcp://127.0.0.1:2375", {}, False),
        ("ssh://me@manager", {}, False),
        ("unix:///var/run/docker.sock", {}, False),
    ],
)
def test_tcp_without_tls_is_open(
    address: str, environment: dict[str, str], is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    for name, value in {**environment, **({"DOCKER_CERT_PATH": str(tmp_path)} if environment else {})}.items():
        monkeypatch.setenv(name, value)
    assert is_open_tcp(address) is is_open
