"""How many calls of an engine an update makes for each task, and how many connections an observer holds open."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.docker.fake_engine import fake_engine
from tests.unit.props import task_props
from tests.unit.simulation import World
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.agent.record.record_files import RecordList, small_file
from tfdeploy.backends.base import TaskProps
from tfdeploy.backends.docker.swarm.services import task_service
from tfdeploy.backends.docker.task_runner import DockerTaskRunner

PARALLEL = 4
"""So many resources at once: Pulumi's process of dynamic providers has as many threads."""


def props_of(address: str, number: int) -> list[TaskProps]:
    cluster = {**task_props()["cluster"], "home": address}
    own = {name: value for name, value in task_props()["dependencies"].items() if name != "launcher_token"}
    return [
        task_props(cluster=cluster, hostname=f"worker-{index}", index=index, dependencies=own)
        for index in range(number)
    ]


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
    """An engine with these tasks."""
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
