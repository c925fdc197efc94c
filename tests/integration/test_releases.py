"""A cluster that a release stored: this version shows, updates and destroys it, and does not train again what was trained."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import tfdeploy
from tests.clusters import OWNER
from tests.integration.conftest import ROOT, Call, Project
from tests.integration.moving import ARGUMENTS, TRAINS, assert_continuous
from tests.releases import stored
from tests.releases.stored import StoredRelease, releases
from tests.waiting import until
from tfdeploy.backends.local.paths import machine_id
from tfdeploy.backends.local.planner import this_machine

LINES = ["worker-0 | step 1: loss 1.0", "worker-0 | step 2: loss 0.5", "worker-0 | accuracy: 0.75"]
RELEASES = releases("local")
ELSEWHERE = releases("docker", "ec2", "kubernetes")
"""Clusters at places that do not exist here."""


@pytest.fixture(params=RELEASES, ids=lambda release: release.version)
def release(request: pytest.FixtureRequest, project: Project) -> StoredRelease:
    """The cluster of a release, restored: after a restart of the machine on which that version has run."""
    found: StoredRelease = request.param
    homes = [json.loads(text)["cluster"]["home"] for text in found.texts("registry/*.json").values()]
    (home,) = (home.replace(stored.PLACE, str(project.folder)) for home in homes)
    values = {
        stored.PLACE: str(project.folder),
        stored.OWNER: OWNER,
        stored.MACHINE: this_machine().name,
        stored.MACHINE_ID: machine_id(),
        stored.RUNTIME: home,
        stored.BIN: str(Path(sys.executable).parent),
    }
    restored = found.restored(values)
    restored.write_program(project.program)
    restored.write_state(Path(project.env["XDG_STATE_HOME"], "tfdeploy"))
    (project.folder / "stack.json").write_text(json.dumps(restored.data["stack"]))
    for command in (("stack", "import", "--file", "../stack.json"), ("config", "set", "tfdeploy:run_id", "second")):
        done = project.call(*command, "--stack", project.stack)
        assert done.exit_code == 0, done.output
    return restored


def test_a_stored_cluster_is_shown_updated_and_destroyed(release: StoredRelease, project: Project) -> None:
    before = _shown(project)
    assert project.shown()["state"] == "succeeded"
    assert [(row["result"], row["metrics"]) for row in before["runs"]] == [("succeeded", {"accuracy": 0.75})] * 2
    assert before["logs"] == LINES

    assert _operations(project.up()) <= {"same", "update"}, "no resource is replaced, created or deleted"
    assert _shown(project) == before, "nothing was trained again, and nothing of the history is lost"
    project.up("--refresh")
    restored = {"controller", "ps-0", "worker-0"}
    assert set(project.supervisor().programs()) == restored, "what a restart of the machine has ended"
    assert project.outputs()["state"] == "succeeded"
    assert _shown(project) == before

    assert project.call("config", "set", "tfdeploy:run_id", "third", "--stack", project.stack).exit_code == 0
    assert project.up(env={"TFDEPLOY_WAIT": "10m"}).touched() == {"test-run"}
    newest = _shown(project)["runs"][0]
    assert newest["result"] == "succeeded"
    assert "run_id" in newest["changed"]  # and this machine's size, where it differs
    project.destroy()
    assert _shown(project)["runs"][1:] == [{**row, "current": False} for row in before["runs"]]
    model = tfdeploy(project, "cp", f"run:{before['runs'][0]['run']}/model", "copy")
    assert model.code == 0, model.err
    assert (project.program / "copy" / "saved_model.pb").read_text() == "a model"


@pytest.mark.parametrize("found", ELSEWHERE, ids=lambda found: f"{found.version}-{found.backend}")
def test_a_stored_cluster_is_shown_when_its_place_does_not_respond(found: StoredRelease, tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "a"}
    project.env |= {**nowhere, "AWS_EC2_METADATA_DISABLED": "true"}
    restored = found.restored({stored.PLACE: str(project.folder), stored.ENGINE: "unix:///nowhere/docker.sock"})
    restored.write_program(project.program)
    restored.write_state(Path(project.env["XDG_STATE_HOME"], "tfdeploy"))
    shown = _shown(project)
    assert [(row["result"], row["metrics"]) for row in shown["runs"]] == [("succeeded", {"accuracy": 0.75})] * 2
    assert shown["logs"] == LINES
    assert project.shown()["state"] == "succeeded"


def test_a_version_with_another_agent_updates_a_cluster_that_trains(project: Project) -> None:
    project.write(ARGUMENTS.replace('wait="1"', 'wait="0"'), TRAINS)
    project.up()
    until(lambda: "step 20:" in project.log("worker-0"), "step 20")
    later = project.folder / "later"
    shutil.copytree(ROOT / "tfdeploy", later / "tfdeploy")
    with (later / "tfdeploy" / "agent" / "steps.py").open("a") as module:
        module.write("# another version\n")
    project.env["PYTHONPATH"] = str(later)
    update = project.up()
    assert update.touched() == {"test-worker-0"}
    assert _operations(update) <= {"same", "update"}
    until(lambda: project.log("worker-0").count("continues at step") == 2, "the program continues")
    until(lambda: project.log("worker-0").rpartition("continues at")[2].count("\n") > 1, "the program trains")
    assert_continuous(project.log("worker-0").splitlines())
    project.destroy()


def _shown(project: Project) -> dict[str, Any]:
    """What the command shows of all runs, and the lines of the present one."""
    runs = tfdeploy(project, "runs", "--json")
    logs = tfdeploy(project, "logs")
    assert (runs.code, logs.code) == (0, 0), runs.err + logs.err
    return {"runs": runs.data, "logs": logs.out.splitlines()}


def _operations(update: Call) -> set[str]:
    """What an update has done to the resources."""
    events = [json.loads(line) for line in update.events.splitlines()]
    return {event["resOutputsEvent"]["metadata"]["op"] for event in events if "resOutputsEvent" in event}
