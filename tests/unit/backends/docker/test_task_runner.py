"""How many calls of an engine an update makes for each task, and how many connections an observer holds open. Each task
has its own token, a secret of the Swarm."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from tests.unit.backends.docker.fake_engine import FakeApi, api_error, fake_engine
from tests.unit.props import CANARY, task_props
from tests.unit.simulation import World
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.agent.record.record_files import RecordList, small_file
from tfdeploy.agent.wire.rpc import task_token
from tfdeploy.backends.base import TaskProps
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import HOSTNAME_LABEL, ID_LABEL
from tfdeploy.backends.docker.swarm.services import TOKEN_FILE, task_service
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.errors import BackendError

PARALLEL = 4
"""So many resources at once: Pulumi's process of dynamic providers has as many threads."""


def props(hostname: str = "worker-1", **changed: Any) -> TaskProps:
    """As the state has them: without the token of its launcher."""
    own = {name: value for name, value in task_props()["dependencies"].items() if name != "launcher_token"}
    return task_props(hostname=hostname, dependencies=own, **changed)


def props_of(address: str, number: int) -> list[TaskProps]:
    cluster = {**task_props()["cluster"], "home": address}
    return [props(f"worker-{index}", index=index, cluster=cluster) for index in range(number)]


@pytest.mark.parametrize("number", [1, 100])
def test_a_task_is_created_by_three_calls(tmp_path: Path, number: int) -> None:
    """One lists the machines that do not respond, one creates the service, one the secret with its token."""
    responses = {"GET nodes": [], "POST services/create": {"ID": "1"}, "POST secrets/create": {"ID": "2"}}
    with fake_engine(tmp_path / "engine.sock", responses) as engine:
        runner = DockerTaskRunner()
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(runner.create_task, props_of(engine.address, number)))
        for call in ("GET nodes", "POST services/create", "POST secrets/create"):
            assert engine.calls.count(call) == number
        assert {*engine.calls} == {"GET version", "GET nodes", "POST services/create", "POST secrets/create"}
        assert engine.calls.count("GET version") == 1
        assert engine.most_connections <= PARALLEL


def observed_responses(props: list[TaskProps]) -> Mapping[str, Any]:
    services = [task_service({**item, "dependencies": task_props()["dependencies"]}) for item in props]
    return {
        "GET nodes": [],
        "GET services": [
            {"ID": item.name, "Spec": {"Name": item.name, "Labels": dict(item.labels)}} for item in services
        ]
        + [{"ID": "controller", "Spec": {"Name": "c", "Labels": {"tfdeploy.hostname": "controller"}}}],
        "GET tasks": [{"ServiceID": item.name, "CreatedAt": "1", "Status": {"State": "running"}} for item in services],
    }


@pytest.mark.parametrize("number", [2, 100])
@pytest.mark.parametrize("is_preview", [True, False])
def test_an_observation_makes_as_many_calls_for_all_tasks_over_two_connections(
    tmp_path: Path, number: int, is_preview: bool
) -> None:
    path = tmp_path / "engine.sock"
    run = World(workers=number).job
    state = small_file(f"runs/{run.spec.id}/run_state.json", json.dumps(run.to_dict()))
    listed = RecordList("r", 7.0, [state], run.spec.id, [run.spec.id])
    content: RecordView | RecordList = RecordView(at=7.0, run_state=run) if is_preview else listed
    props = props_of(f"unix://{path}", number)
    with fake_engine(path, observed_responses(props), json.dumps(content.to_dict()).encode()) as engine:
        cluster = props[0]["cluster"]
        DockerTaskRunner().observe(cluster, "", ViewRequest(), is_preview)
        engine.calls.clear()
        observed = DockerTaskRunner().observe(cluster, "", ViewRequest(), is_preview)
        assert observed.engine is not None
        assert len(observed.engine) == number
        assert observed.view.run_state is not None
        assert observed.problems == []
        assert engine.calls == ["GET nodes", "GET services", "GET tasks", "POST /view" if is_preview else "POST /files"]
        assert engine.most_connections == 2


class Secrets(FakeApi):
    """An engine with secrets, and with the services that it gets."""

    def __init__(self) -> None:
        self.existing: list[dict[str, Any]] = []
        self.contents: dict[str, tuple[str, bytes, dict[str, str]]] = {}
        """Name to id, content and labels."""

    def create_secret(self, name: str, data: bytes, labels: dict[str, str]) -> dict[str, str]:
        if name in self.contents:
            raise api_error(409, "name conflicts")
        self.contents[name] = f"id-{len(self.contents)}", data, labels
        return {"ID": self.contents[name][0]}

    def secrets(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        """As the engine does, it finds those whose names begin so."""
        found = [(name, item) for name, item in self.contents.items() if name.startswith(filters["name"])]
        return [{"ID": item[0], "Spec": {"Name": name}} for name, item in reversed(found)]

    def services(self, filters: Any) -> list[dict[str, Any]]:
        return self.existing

    def nodes(self) -> list[dict[str, Any]]:
        return []

    def create_service(self, template: dict[str, Any], **more: Any) -> None:
        self.existing.append({"Spec": {"TaskTemplate": template, "Labels": more["labels"], "Name": more["name"]}})


def runner(api: Secrets) -> DockerTaskRunner:
    return DockerTaskRunner(engine=lambda cluster: cast(Engine, api))


def mounted(service: dict[str, Any]) -> dict[str, str]:
    """The ids of the secrets that a service mounts, by file."""
    secrets = service["Spec"]["TaskTemplate"]["ContainerSpec"]["Secrets"]
    return {item["File"]["Name"]: item["SecretID"] for item in secrets}


def test_each_task_mounts_its_own_token_and_no_other() -> None:
    api = Secrets()
    for hostname in ("worker-0", "worker-1", "worker-10"):
        runner(api).create_task(props(hostname))
    contents = {identity: content.decode() for identity, content, _ in api.contents.values()}
    for service in api.existing:
        hostname = service["Spec"]["Labels"][HOSTNAME_LABEL]
        assert contents[mounted(service)[TOKEN_FILE]] == task_token(CANARY, hostname)
    assert len(contents) == 3
    assert all(labels[ID_LABEL] == props()["cluster"]["id"] for *_, labels in api.contents.values())
    shown = json.dumps([api.existing, [*api.contents]])
    assert not any(text in shown for text in (CANARY, *contents.values()))


def test_a_secret_that_exists_is_used_again() -> None:
    api = Secrets()
    api.create_secret("another", b"", {})
    for _ in range(2):
        runner(api).create_task(props("worker-1"))
    name = next(name for name in api.contents if name != "another")
    api.create_secret(f"{name}0", b"of another", {})
    runner(api).create_task(props("worker-1"))
    assert len({mounted(service)[TOKEN_FILE] for service in api.existing}) == 1


def test_a_service_never_gets_the_token_of_the_user() -> None:
    api = Secrets()
    with patch.object(api, "create_secret", side_effect=api_error(500, "no")), pytest.raises(BackendError):
        runner(api).create_task(props("worker-1"))
    assert api.existing == []
