"""What the component asks of Pulumi: mocks prove what is asked for, never what an engine makes of it."""

import base64
import json
from typing import Any

import pytest
from pulumi.provider.experimental.component import ComponentProvider

from tests.components.mocked import declare, refused, run, without_secrets
from tfdeploy import TensorFlowCluster, TensorFlowClusterArgs
from tfdeploy.cluster import TYPE

CANARY = "canary-7f3a"


TREE = """\
pulumi:pulumi:Stack$tfdeploy:index:TensorFlowCluster::mnist
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Run::mnist-run
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Sweeper::mnist-sweeper
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Task::mnist-ps-0
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Task::mnist-worker-0
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Task::mnist-worker-1"""
"""Types and names are frozen: another one would replace what stands in every user's stack."""


@pytest.mark.parametrize("preview", [False, True])
def test_a_cluster_is_made_of_a_sweeper_its_tasks_and_a_run(preview: bool) -> None:
    assert run(lambda: declare(ps=1, workers=2), preview).urns() == TREE


def test_arguments_may_be_given_one_by_one_in_args_or_in_the_configuration() -> None:
    def one_by_one() -> None:
        TensorFlowCluster("mnist", ps=1, workers=2, command=["python", "-c", "1"], wait="0")

    assert run(one_by_one).urns() == TREE
    assert run(declare, ps="1", workers="2").urns() == TREE


def test_everything_is_made_after_the_sweeper_and_the_run_last() -> None:
    assert run(lambda: declare(ps=1, workers=1)).after == {
        "project-stack": [],
        "mnist": [],
        "mnist-sweeper": [],
        "mnist-ps-0": ["mnist-sweeper"],
        "mnist-worker-0": ["mnist-sweeper"],
        "mnist-run": ["mnist-ps-0", "mnist-sweeper", "mnist-worker-0"],
    }


def test_the_outputs_are_registered() -> None:
    outputs = ["cost", "endpoints", "logs", "machines", "metrics", "observed_at", "state", "status", "tasks"]
    assert run(lambda: declare(workers=1)).outputs == outputs


@pytest.mark.parametrize("preview", [False, True])
def test_the_outputs_are_those_of_a_look(preview: bool) -> None:
    seen: dict[str, Any] = {}
    run(lambda: declare(workers=1, metrics={"a": "b"}).metrics.apply(seen.update), preview)
    assert seen == {"a": None}


def test_providers_are_named_in_the_state_not_written_out() -> None:
    inputs = run(lambda: declare(workers=1)).inputs
    named = {
        "mnist-sweeper": b"SweeperProvider",
        "mnist-worker-0": b"TaskProvider",
        "mnist-run": b"RunProvider",
    }
    for name, provider in named.items():
        pickled = base64.b64decode(inputs[name]["__provider"])
        assert b"tfdeploy.resources" in pickled
        assert provider in pickled
        assert len(pickled) < 80


def test_secrets_are_pulumi_secrets_wherever_they_go() -> None:
    inputs = run(lambda: declare(workers=1, secrets={"TOKEN": CANARY})).inputs
    assert CANARY in json.dumps(inputs["mnist-run"])
    assert CANARY not in json.dumps(without_secrets(inputs))


def test_secrets_of_the_configuration_reach_the_run() -> None:
    inputs = run(lambda: declare(workers=1), secrets=json.dumps({"TOKEN": CANARY})).inputs
    assert CANARY in json.dumps(inputs["mnist-run"])


def test_two_clusters_stand_side_by_side_but_not_under_one_name() -> None:
    said: list[str] = []

    def program() -> None:
        declare("one", workers=1)
        declare("two", workers=1)
        said.append(refused(lambda: declare("one", workers=1)))

    names = [line.rpartition("::")[2] for line in run(program).urns().splitlines()]
    assert sorted(names) == [
        "one",
        "one-run",
        "one-sweeper",
        "one-worker-0",
        "two",
        "two-run",
        "two-sweeper",
        "two-worker-0",
    ]
    assert said == ["TensorFlowCluster: the name 'one' is given twice in this program. Choose another."]


def test_pulumi_makes_a_schema_of_the_component_with_a_description_of_everything() -> None:
    schema = json.loads(ComponentProvider([TensorFlowCluster], "tfdeploy").schema)  # type: ignore[arg-type]
    cluster = schema["resources"][TYPE]
    assert set(map(snake, cluster["inputProperties"])) == set(TensorFlowClusterArgs.__annotations__)
    assert set(map(snake, cluster["properties"])) == {
        "cost",
        "endpoints",
        "logs",
        "machines",
        "metrics",
        "observed_at",
        "state",
        "status",
        "tasks",
    }
    assert cluster.get("requiredInputs", []) == []
    holders = [cluster, *schema["types"].values()]
    described = [
        found.get("description")
        for holder in holders
        for kind in ("inputProperties", "properties")
        for found in holder.get(kind, {}).values()
    ]
    assert cluster["description"]
    assert all(described)


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
