"""What the component asks of Pulumi: mocks prove what is asked for, never what an engine makes of it."""

import base64
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.components.mocked import declare, refused, run, without_secrets
from tfdeploy import TensorFlowCluster, registry
from tfdeploy.paths import RECORDS_FOLDER, cluster_folder, state_folder
from tfdeploy.report import update_wait
from tfdeploy.report.report import Report
from tfdeploy.report.update_wait import Watch, observed

CANARY = "canary-7f3a"


TREE = """\
pulumi:pulumi:Stack$tfdeploy:index:TensorFlowCluster::mnist
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Cleanup::mnist-cleanup
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Run::mnist-run
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Task::mnist-ps-0
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Task::mnist-worker-0
tfdeploy:index:TensorFlowCluster$pulumi-python:dynamic/tfdeploy:Task::mnist-worker-1
tfdeploy:index:TensorFlowCluster$pulumi:index:Stash::mnist-id"""
"""Types and names are frozen: another one would replace what stands in every user's stack."""


@pytest.mark.parametrize("preview", [False, True])
def test_a_cluster_is_made_of_a_cleanup_its_tasks_and_a_run(preview: bool) -> None:
    assert run(lambda: declare(ps=1, workers=2), preview).urns() == TREE


def test_arguments_may_be_given_one_by_one_in_args_or_in_the_configuration() -> None:
    def one_by_one() -> None:
        TensorFlowCluster("mnist", ps=1, workers=2, command=["python", "-c", "1"], wait="0")

    assert run(one_by_one).urns() == TREE
    assert run(declare, ps="1", workers="2").urns() == TREE


def test_everything_is_made_after_the_cleanup_and_the_run_last() -> None:
    assert run(lambda: declare(ps=1, workers=1)).after == {
        "project-stack": [],
        "mnist": [],
        "mnist-id": [],
        "mnist-cleanup": ["mnist-id"],
        "mnist-ps-0": ["mnist-cleanup"],
        "mnist-worker-0": ["mnist-cleanup"],
        "mnist-run": ["mnist-cleanup", "mnist-ps-0", "mnist-worker-0"],
    }


def test_the_outputs_are_registered() -> None:
    outputs = [
        "artifacts",
        "cost",
        "endpoints",
        "logs",
        "machines",
        "metrics",
        "run",
        "state",
        "status",
        "tasks",
        "train_dir",
    ]
    assert run(lambda: declare(workers=1)).outputs == outputs


@pytest.mark.parametrize("preview", [False, True])
def test_the_outputs_are_those_of_a_look(preview: bool) -> None:
    seen: dict[str, Any] = {}
    run(lambda: declare(workers=1, metrics={"a": "b"}).metrics.apply(seen.update), preview)
    assert seen == {"a": None}


def test_providers_are_named_in_the_state_not_written_out() -> None:
    inputs = run(lambda: declare(workers=1)).inputs
    named = {
        "mnist-cleanup": b"CleanupProvider",
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


def test_an_update_removes_what_destroy_stored_longer_ago_than_retention_and_a_preview_does_not() -> None:
    run(lambda: declare(workers=1))
    (entry,) = registry.entries()
    earlier = replace(entry, cluster={**entry.cluster, "id": "earlierone"}, ended=1.0)
    registry.write(earlier)
    archives = state_folder() / RECORDS_FOLDER / cluster_folder(earlier.cluster)
    old, newest = archives / "20200101T000000.000000Z", archives / "20200102T000000.000000Z"
    for archive in (old, newest):
        (archive / "train").mkdir(parents=True)
    run(lambda: declare(workers=1))
    run(lambda: declare(workers=1, retention="30d"), True)
    assert old.exists()
    run(lambda: declare(workers=1, retention="30d"))
    assert (old.exists(), newest.exists()) == (False, True)


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
        "one-cleanup",
        "one-id",
        "one-run",
        "one-worker-0",
        "two",
        "two-cleanup",
        "two-id",
        "two-run",
        "two-worker-0",
    ]
    assert said == ["TensorFlowCluster: the name 'one' is used twice in this program. Choose another."]


def test_two_updates_of_one_process_do_not_influence_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    watches: list[Watch] = []

    async def captured(watch: Watch, submitted_at: str) -> Report:
        watches.append(watch)
        return await observed(watch, submitted_at)

    monkeypatch.setattr(update_wait, "observed", captured)
    trees = []
    for _ in range(2):
        before = time.time()
        trees.append(run(lambda: declare(ps=1, workers=2)).urns())
        assert before <= watches[-1].begun <= time.time()
        watches[-1].detached.set()
    assert trees == [TREE, TREE], "the name is used once in each update"
    assert watches[0].detached is not watches[1].detached
