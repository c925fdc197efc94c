"""What belongs to no stack is found and removed; nothing else is."""

import shutil

from tests.cli.calling import ARGUMENTS, TRAIN, tfdeploy
from tests.integration.conftest import Project


def state_of(project: Project, *options: str) -> str:
    """What is said of the project's cluster; empty where it is not listed."""
    told = tfdeploy(project, "ls", "--leftovers", "--json", *options).data["leftovers"]
    return next((row["state"] for row in told if row["home"] == str(project.places().home)), "")


def test_a_killed_update_is_busy_then_its_stacks_then_left_over(project: Project) -> None:
    project.write(ARGUMENTS.replace('wait="0"', 'wait="10m"'), TRAIN)
    first = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    project.until_running("ps-0", "worker-0", "worker-1")
    assert state_of(project) == ""
    project.kill(first)
    assert state_of(project) == "", "its stack has it: `destroy` takes it away"

    project.call("cancel", "--yes", "--stack", project.stack)
    backend = project.folder / "backend"
    shutil.move(backend, project.folder / "away")
    backend.mkdir()
    assert state_of(project) == "left over"
    lock = backend / ".pulumi/locks/organization/project/test/lock.json"
    lock.parent.mkdir(parents=True)
    lock.write_text("{}")
    assert state_of(project) == "busy"
    refused = tfdeploy(
        project, "ls", "--leftovers", "--delete", "--yes", "--cluster", "project/test/test", "--stack", "test"
    )
    assert refused.code != 0
    assert project.supervisor().running()

    lock.unlink()
    asked = tfdeploy(project, "ls", "--leftovers", "--delete", "--cluster", "project/test/test")
    assert (asked.code, "Use --yes to continue." in asked.err) == (2, True), asked.err
    removed = tfdeploy(project, "ls", "--leftovers", "--delete", "--yes", "--stack", "test")
    assert removed.code == 0, removed.err
    assert "project/test/test: the record" in removed.out
    project.assert_nothing_left()
    assert state_of(project) == ""
    assert "Retained on purpose: 1 record of destroyed clusters" in tfdeploy(project, "ls", "--leftovers").out


def test_what_was_not_made_from_here_is_unknown_and_still_looked_at(training: Project) -> None:
    for path in (training.folder / "state/tfdeploy/registry").iterdir():
        path.unlink()
    shown = tfdeploy(training, "show", "--json").data[0]
    assert [row["hostname"] for row in shown["tasks"]] == ["ps-0", "worker-0", "worker-1"]
    assert state_of(training) == "unknown"
    kept = tfdeploy(training, "ls", "--leftovers", "--delete", "--yes", "--json", "--stack", "test")
    assert (kept.code, kept.data) == (0, [])
    named = tfdeploy(training, "ls", "--leftovers", "--delete", "--yes", "--cluster", "training/test/test")
    assert (named.code, "may still be running" in named.err) == (2, True)
    assert training.supervisor().running()
