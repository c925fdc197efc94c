"""The main job as the README has it: MNIST on one ps and two workers, by a real `pulumi up`, with real TensorFlow and TensorBoard."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import fetched
from tests.integration.conftest import Call, Project
from tests.integration.pictures import mnist_project
from tests.waiting import until


def last_step(project: Project) -> int:
    """The last step that worker-0 told of."""
    told = re.findall(r"^step (\d+) ", project.log("worker-0", "mnist"), re.MULTILINE)
    return int(told[-1]) if told else 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Call]]:
    """One training, looked at by several tests."""
    project = mnist_project(tmp_path_factory.mktemp("trained") / "mnist")
    yield project, project.up()
    project.clean()


def statuses(project: Project) -> dict[str, str]:
    """Hostname to status now."""
    return {row["hostname"]: row["status"] for row in project.shown("mnist")["tasks"]}


def test_the_last_24_lines_have_the_tables_the_accuracy_and_how_to_look_further(trained: tuple[Project, Call]) -> None:
    project, first = trained
    end = [line.rstrip() for line in first.output.rstrip().splitlines()[-24:]]
    text = "\n".join(end)
    assert re.search(r"^    run +\w{12}, took (\d+m)?(\d+s)?$", text, re.MULTILINE)
    assert re.search(r"^    progress +step (999|100\d)/1000, \d+\.\d steps/s, loss 0\.\d+$", text, re.MULTILINE)
    assert re.search(r"^    stored +export \(model, .*\), model\.ckpt-100\d \(checkpoint, .*\)$", text, re.MULTILINE)
    assert first.output.count("HOSTNAME ") == 1, "the table is printed once"
    assert "    Run succeeded: worker-0 succeeded." in end
    assert "    More: `tfdeploy status`, `tfdeploy logs worker-0`, `tfdeploy report`." in end
    assert f"    accuracy: {project.outputs()['accuracy']:g}" in end
    assert "    logs    : [" in end


def test_the_accuracy_is_a_stack_output(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    outputs = project.outputs()
    assert outputs["accuracy"] > 0.9
    assert statuses(project) == {"ps-0": "stopped (run finished)", "worker-0": "succeeded", "worker-1": "succeeded"}
    assert outputs["logs"][-1] == f"MNIST accuracy: {outputs['accuracy']:.4f}"
    assert outputs["status"] == statuses(project)


def test_the_variables_live_on_the_ps_and_both_workers_train(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    devices = re.findall(r"variable (\S+) on (\S+)", project.log("worker-0", "mnist"))
    assert devices
    assert {device.partition("/task")[0] for _, device in devices} == {"/job:ps"}
    steps = [re.search(rf"{name} did (\d+) steps", project.log(name, "mnist")) for name in ("worker-0", "worker-1")]
    assert [found is not None and int(found.group(1)) > 50 for found in steps] == [True, True]


def test_a_second_up_has_no_resource_step_and_starts_nothing(trained: tuple[Project, Call]) -> None:
    project, _ = trained
    before = project.outputs()
    for options in ((), ("--refresh",)):
        again = project.up(*options)
        assert again.steps() == {"unchanged": 8}
        assert again.other_outputs() == set()
    assert project.outputs() == before


def shows_the_curves(project: Project, run: str) -> None:
    """TensorBoard has the scalars of the run that is over, and a page of its own."""

    def board() -> dict[str, Any]:
        found: dict[str, Any] = project.shown("mnist")["tasks"][-1]
        return found

    until(lambda: board()["status"] == "running", "TensorBoard running")
    address = f"http://{board()['address']}"
    assert address.startswith("http://127.0.0.1:")

    def scalars() -> set[str]:
        return {*json.loads(fetched(f"{address}/data/plugin/scalars/tags") or "{}").get(run, {})}

    until(lambda: scalars() >= {"accuracy", "loss"}, "the run's curves")
    assert json.loads(fetched(f"{address}/data/runs")) == [run]
    assert b"<title>TensorBoard</title>" in fetched(f"{address}/")
    assert len(json.loads(fetched(f"{address}/data/plugin/scalars/scalars?run={run}&tag=loss"))) >= 10


def test_tensorboard_comes_and_goes_after_the_training_and_changes_nothing_else(trained: tuple[Project, Call]) -> None:
    project, _ = trained

    def rest() -> tuple[list[Any], list[str]]:
        crew = [row for row in project.shown("mnist")["tasks"] if row["job"] != "tensorboard"]
        return crew, [path.name for path in project.places("mnist").train.iterdir() if path.is_dir()]

    before = rest()
    (run,) = before[1]
    project.set("tfdeploy:tensorboard", "true")
    assert project.up().touched() == {"mnist-cleanup", "mnist-tensorboard-0", "mnist-run"}
    shows_the_curves(project, run)
    assert project.up("--refresh").steps() == {"unchanged": 9}
    seen = project.shown("mnist")
    assert (seen["state"], seen["tasks"][-1]["status"]) == ("succeeded", "running")
    assert seen["endpoints"]["tensorboard-0"] == seen["tasks"][-1]["address"]
    assert rest() == before
    assert project.call("config", "rm", "tfdeploy:tensorboard", "--stack", project.stack).exit_code == 0
    assert project.up().touched() == {"mnist-cleanup", "mnist-tensorboard-0", "mnist-run"}
    assert rest() == before


def saved_step(project: Project) -> int:
    """The step of the newest checkpoint; 0 where there is none."""
    found = project.places("mnist").train.glob("*/model.ckpt-*.index")
    return max((int(path.stem.rpartition("-")[2]) for path in found), default=0)


def resumed_step(project: Project, hostname: str) -> int:
    """The step at which a worker said first that it resumed; 0 where it did not."""
    told = re.search(r"resumed at step (\d+)", project.log(hostname, "mnist"))
    return int(told.group(1)) if told else 0


def test_killed_tasks_come_back_and_training_resumes_from_the_checkpoint(tmp_path: Path) -> None:
    """The ps, which holds the variables, and one of the workers; both at once."""
    project = mnist_project(tmp_path / "mnist", "--steps=1500")
    try:
        update = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
        until(lambda: project.places("mnist").record.exists() and last_step(project) >= 200, "step 200")
        saved = saved_step(project)
        for hostname in ("ps-0", "worker-1"):
            project.child(hostname, "mnist").send_signal(signal.SIGKILL)
        said, _ = update.communicate()
        assert update.returncode == 0, said
        assert saved > 0
        assert min(resumed_step(project, hostname) for hostname in ("worker-0", "worker-1")) >= saved
        outputs = project.outputs()
        assert outputs["status"]["worker-0"] == "succeeded"
        assert outputs["accuracy"] > 0.9
        project.destroy()
    finally:
        project.clean()
