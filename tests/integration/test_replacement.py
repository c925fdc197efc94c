"""What replaces a resource of a cluster does not delete it, whatever makes Pulumi replace it (`tests/contract` has each backend)."""

import json

import pytest

from tests.integration.conftest import PROGRAM, WAITS, Project

JOB = (
    'command=["python", "train.py"], code="code", workers=2, wait="0", '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
TRANSFORM = """\
from pulumi.runtime import register_resource_transform

def deleted_first(args):
    more = pulumi.ResourceOptions(delete_before_replace=True)
    return pulumi.ResourceTransformResult(args.props, pulumi.ResourceOptions.merge(args.opts, more))

register_resource_transform(deleted_first)
"""
WORKERS = ("worker-0", "worker-1")


@pytest.fixture
def training(project: Project) -> Project:
    """A cluster that trains until the file `.gate` exists."""
    project.write(JOB, WAITS)
    project.up()
    project.until_running(*WORKERS)
    return project


def finish(project: Project) -> None:
    """Have the run succeed, which has not started its tasks again meanwhile."""
    (project.folder / "counter/.gate").touch()
    project.up(env={"TFDEPLOY_WAIT": "5m"})
    assert project.outputs()["state"] == "succeeded"


def assert_nothing_begins(project: Project, starts: dict[str, int]) -> None:
    """One more update changes nothing, and no task starts."""
    assert list(project.up().steps()) == ["unchanged"]
    assert project.counts() == starts


def edit(project: Project, kind: str, **members: object) -> None:
    """Add members to the dynamic resources of this kind in the state."""
    state = json.loads(project.state().read_text())
    resources = state["checkpoint"]["latest"]["resources"]
    named = [item for item in resources if item["type"].endswith(f"/tfdeploy:{kind}")]
    assert named
    for item in named:
        item.update(members)
    project.state().write_text(json.dumps(state))


def replaced(project: Project, name: str) -> tuple[str, ...]:
    """The options that replace a resource."""
    (urn,) = {item["urn"] for item in project.resources() if item["urn"].endswith(f"::{name}")}
    return "--replace", urn


@pytest.mark.parametrize("finished", [False, True], ids=["open", "finished"])
def test_a_tainted_resource(training: Project, finished: bool) -> None:
    starts = dict.fromkeys(WORKERS, 1)
    if finished:
        finish(training)
    edit(training, "Cleanup", taint=True)
    refused = training.up(fails=True).output
    (remedy,) = {line.split("`")[3] for line in refused.splitlines() if line.strip().startswith("error: before hook")}
    urn = remedy.removeprefix("pulumi state untaint ").strip("'")
    assert training.call("state", "untaint", "--yes", "--stack", training.stack, urn).exit_code == 0
    edit(training, "Run", taint=True)
    edit(training, "Task", taint=True)
    assert training.up().steps()["replaced"] == 3
    if not finished:
        starts = dict.fromkeys(WORKERS, 2)
        training.until_running(*WORKERS)
    assert_nothing_begins(training, starts)
    finish(training)
    assert training.counts() == starts
    training.destroy()


def test_a_transform_by_which_predecessors_are_deleted_first_and_only_destroy_deletes_the_cluster(
    training: Project,
) -> None:
    """Also where `destroy` runs the program."""
    assert "is not replaced" in training.up("--replace", "**", fails=True).output
    later = training.up("--replace", "**test-cleanup", "--continue-on-error", fails=True)
    assert "Nothing was deleted" in later.output
    assert "deleted" not in later.steps()
    assert_nothing_begins(training, dict.fromkeys(WORKERS, 1))
    training.until_running(*WORKERS)

    training.write(JOB, WAITS, TRANSFORM + PROGRAM)
    preview = training.call("preview", "--stack", training.stack, *replaced(training, "test-cleanup"))
    assert preview.exit_code != 0
    assert "test-cleanup is not replaced" in preview.output
    training.up(*replaced(training, "test-run"))
    training.until_running(*WORKERS)
    assert_nothing_begins(training, dict.fromkeys(WORKERS, 1))
    done = training.call("destroy", "--run-program", "--yes", "--skip-preview", "--stack", training.stack)
    assert done.exit_code == 0, done.output
    training.assert_nothing_left()
