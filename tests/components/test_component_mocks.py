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

AFTER_THE_CLEANUP = {
    "project-stack": [],
    "mnist": [],
    "mnist-id": [],
    "mnist-cleanup": ["mnist-id"],
    **{f"mnist-{name}": ["mnist-cleanup"] for name in ("ps-0", "worker-0", "worker-1")},
    "mnist-run": ["mnist-cleanup", "mnist-ps-0", "mnist-worker-0", "mnist-worker-1"],
}
OUTPUTS = "artifacts cost endpoints logs machines metrics run state status tasks train_dir"
PROVIDERS = {"mnist-cleanup": b"CleanupProvider", "mnist-worker-0": b"TaskProvider", "mnist-run": b"RunProvider"}


@pytest.mark.parametrize("preview", [False, True])
def test_a_cluster_is_made_of_a_cleanup_its_tasks_and_a_run(preview: bool) -> None:
    """All is made after the cleanup, the run last; the state names the providers, and does not have their code."""
    seen: dict[str, Any] = {}
    made = run(lambda: declare(ps=1, workers=2, metrics={"a": "b"}).metrics.apply(seen.update), preview)
    assert (made.urns(), made.after) == (TREE, AFTER_THE_CLEANUP)
    assert (" ".join(made.outputs), seen) == (OUTPUTS, {"a": None})
    for name, provider in PROVIDERS.items():
        pickled = base64.b64decode(made.inputs[name]["__provider"])
        assert (b"tfdeploy.resources" in pickled, provider in pickled, len(pickled) < 80) == (True, True, True)


def test_arguments_may_be_given_one_by_one_in_args_or_in_the_configuration() -> None:
    def one_by_one() -> None:
        TensorFlowCluster("mnist", ps=1, workers=2, command=["python", "-c", "1"], wait="0")

    assert run(one_by_one).urns() == TREE
    assert run(declare, ps="1", workers="2").urns() == TREE


def test_secrets_are_pulumi_secrets_wherever_they_go() -> None:
    """Those of the program, and those of the configuration."""
    by_program = run(lambda: declare(workers=1, secrets={"TOKEN": CANARY})).inputs
    by_configuration = run(lambda: declare(workers=1), secrets=json.dumps({"TOKEN": CANARY})).inputs
    for inputs in (by_program, by_configuration):
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


def test_two_clusters_stand_side_by_side_but_not_under_one_name() -> None:
    said: list[str] = []

    def program() -> None:
        declare("one", workers=1)
        declare("two", workers=1)
        said.append(refused(lambda: declare("one", workers=1)))

    names = {line.rpartition("::")[2] for line in run(program).urns().splitlines()}
    assert names == {
        f"{name}{rest}" for name in ("one", "two") for rest in ("", "-cleanup", "-id", "-run", "-worker-0")
    }
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
