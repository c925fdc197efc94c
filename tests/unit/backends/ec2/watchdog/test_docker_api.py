"""What the watchdog reads from an engine: Docker's answers on a Unix socket, made up here, filters obeyed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.docker.fake_engine import fake_engine
from tests.unit.props import cluster
from tfdeploy.backends.docker.labels import RECORD_VOLUME, cluster_labels, service_name, volume_name
from tfdeploy.backends.ec2.watchdog.docker_api import EngineState, LocalEngine

LABELS = dict(cluster_labels(cluster()))
OTHERS = {"com.example": "somebody's own"}


def container(service: str, labels: dict[str, str], state: str = "running") -> dict[str, Any]:
    return {"Labels": {**labels, "com.docker.swarm.service.name": service}, "State": state, "Created": 1700000000}


def node(identity: str, state: str = "ready") -> dict[str, Any]:
    return {"ID": identity, "Status": {"State": state}}


def service(hostname: str, labels: dict[str, str] = LABELS) -> dict[str, Any]:
    return {"Spec": {"Name": service_name(cluster(), hostname), "Labels": labels}}


def task(hostname: str, node: str, state: str = "running") -> dict[str, Any]:
    return {"service": service_name(cluster(), hostname), "NodeID": node, "Status": {"State": state}}


class Docker:
    """What one engine has; it obeys filters."""

    def __init__(self) -> None:
        self.is_manager = True
        self.containers: list[dict[str, Any]] = []
        self.nodes = [node("m0")]
        self.services = [service("controller"), service("worker-0"), service("worker-1"), service("worker-9", OTHERS)]
        self.services += [service("tensorboard-0")]
        self.tasks: list[dict[str, Any]] = []
        self.volumes: list[dict[str, Any]] | None = []

    def response(self, call: str, query: dict[str, list[str]]) -> Any:
        filters: dict[str, list[str]] = json.loads(query.get("filters", ["{}"])[0])

        def labelled(found: dict[str, str]) -> bool:
            return found.keys() >= set(filters.get("label", []))

        everything = query.get("all") == ["1"]
        if call == "GET containers/json":
            found = [one for one in self.containers if labelled(one["Labels"])]
            return [one for one in found if everything or one["State"] == "running"]
        if call == "GET info":
            return {"Swarm": {"ControlAvailable": self.is_manager, "NodeID": "m0"}}
        if call == "GET volumes":
            return {"Volumes": self.volumes and [one for one in self.volumes if labelled(one["Labels"])]}
        if not self.is_manager:
            return 503
        if call == "GET services":
            return [one for one in self.services if labelled(one["Spec"]["Labels"])]
        if call == "GET tasks":
            return [one for one in self.tasks if one["service"] in filters["service"]]
        return {"GET nodes": self.nodes}.get(call, 404)


@pytest.fixture
def docker() -> Docker:
    return Docker()


@pytest.fixture
def engine(docker: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    with fake_engine(tmp_path / "docker.sock", {}) as server:
        monkeypatch.setattr(server, "response", docker.response)
        yield LocalEngine(str(tmp_path / "docker.sock"))


def test_tasks_of_the_cluster_that_run_here_are_counted_and_controller_and_tensorboard_are_none(
    docker: Docker, engine: LocalEngine
) -> None:
    docker.is_manager = False
    docker.containers = [
        container("mnist-k3v9x2abcd-worker-0", LABELS),
        container("mnist-k3v9x2abcd-worker-1", LABELS, "exited"),
        container("mnist-k3v9x2abcd-controller", LABELS),
        container("mnist-k3v9x2abcd-tensorboard-0", LABELS),
        container("other-worker-0", OTHERS),
        {"Labels": {}, "State": "running"},
    ]
    assert engine.observe(False) == EngineState(tasks=1, elsewhere=0, is_manager=False, others=0, last=1700000000.0)


def test_a_manager_counts_other_machines_and_what_runs_on_them(docker: Docker, engine: LocalEngine) -> None:
    docker.nodes = [node("m0"), node("m1"), node("m2"), node("m4", "down")]
    docker.tasks = [
        task("controller", "m0"),
        task("tensorboard-0", "m1"),
        task("worker-0", "m0"),
        task("worker-1", "m1"),
        task("worker-1", "m2", "preparing"),
        task("worker-1", "m2", "shutdown"),
        task("worker-9", "m2"),
        task("worker-1", "a node that was removed"),
    ]
    assert engine.observe(False) == EngineState(tasks=0, elsewhere=1, is_manager=True, others=2)


def test_what_a_node_that_is_down_ran_last_counts_until_the_run_is_over_or_the_swarm_gives_it_up(
    docker: Docker, engine: LocalEngine
) -> None:
    docker.nodes = [node("m0"), node("m1", "down"), node("m2", "unknown")]
    docker.tasks = [task("worker-0", "m1"), task("worker-1", "m2")]
    assert engine.observe(False) == EngineState(tasks=0, elsewhere=2, is_manager=True, others=0)
    assert engine.observe(True) == EngineState(tasks=0, elsewhere=0, is_manager=True, others=0)
    docker.tasks = [task("worker-0", "m1", "orphaned"), task("worker-1", "m2", "orphaned")]
    assert engine.observe(False) == EngineState(tasks=0, elsewhere=0, is_manager=True, others=0)


def test_the_record_is_the_controllers_volume(docker: Docker, engine: LocalEngine, tmp_path: Path) -> None:
    def volume(name: str, labels: dict[str, str] = LABELS) -> dict[str, Any]:
        (tmp_path / name).mkdir(exist_ok=True)
        return {"Name": name, "Mountpoint": str(tmp_path / name), "Labels": labels}

    assert engine.record() is None
    docker.volumes = None
    assert engine.record() is None
    mine = volume_name(cluster(), RECORD_VOLUME)
    docker.volumes = [volume("mnist-k3v9x2abcd-train"), volume("my-record"), volume(mine), volume("o-record", OTHERS)]
    (tmp_path / "o-record" / "current").touch()
    (tmp_path / "mnist-k3v9x2abcd-train" / "current").touch()
    (tmp_path / mine / "record_id").touch()
    assert engine.record() is None, "a new controller may get the record from the bucket yet"
    (tmp_path / mine / "current").touch()
    assert engine.record() == tmp_path / mine
