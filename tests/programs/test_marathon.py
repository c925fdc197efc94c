"""The program of people who come from Marathon: the chief's losses, sharded checkpoints, the head of the template as settings."""

import json
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.programs.program import Program
from tests.waiting import until
from tfdeploy.agent.record import Record

SHARDS = ("data-00000-of-00002", "data-00001-of-00002")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One training with nothing set, looked at by several tests."""
    program = Program(tmp_path_factory.mktemp("trained") / "marathon", "marathon_mnist")
    program.configure(log_lines=1000, wait="8m")
    program.up()
    yield program
    program.clean()


def steps(program: Program) -> list[int]:
    """The steps of which the chief told the loss."""
    return [
        int(step)
        for step in re.findall(r"^step (\d+) loss \d+\.\d{4}$", program.log("worker-0", "mnist"), re.MULTILINE)
    ]


def run(program: Program) -> Mapping[str, Any]:
    """The present run, as the record has it."""
    job = Record(program.places("mnist").record).current()
    assert job is not None
    return job.run


def test_the_final_loss_is_an_output(trained: Program) -> None:
    outputs = trained.outputs()
    assert outputs["state"] == "succeeded"
    assert 0 < outputs["final_loss"] < 0.6
    assert f"final loss {outputs['final_loss']:.4f}" == outputs["logs"]["worker-0"][-1]
    stopped = "stopped (job finished)"
    assert trained.statuses() == {
        "ps-0": stopped,
        "ps-1": stopped,
        "worker-0": "succeeded",
        "worker-1": "succeeded",
    }


def test_the_chief_tells_the_loss_of_each_step(trained: Program) -> None:
    told = steps(trained)
    (done,) = re.findall(r"^worker-0 did (\d+) steps$", trained.log("worker-0", "mnist"), re.MULTILINE)
    assert len(told) == int(done)
    assert len(told) == len(set(told))
    assert re.search(r"^worker-1 did [1-9]", trained.log("worker-1", "mnist"), re.MULTILINE), "all workers train"
    assert "final loss" not in trained.log("worker-1", "mnist")
    losses = [
        float(loss) for loss in re.findall(r"^step \d+ loss (\S+)$", trained.log("worker-0", "mnist"), re.MULTILINE)
    ]
    assert losses[-1] < losses[0]


def test_variables_and_checkpoints_are_spread_over_both_ps(trained: Program) -> None:
    devices = dict(re.findall(r"^variable (\S+) on (\S+)$", trained.log("worker-0", "mnist"), re.MULTILINE))
    assert {device.rpartition("/device")[0] or device for device in devices.values()} == {
        "/job:ps/task:0",
        "/job:ps/task:1",
    }
    folder = Path(run(trained)["train_dir"])
    (newest,) = re.findall(r'^model_checkpoint_path: "(.+)"$', (folder / "checkpoint").read_text(), re.MULTILINE)
    sizes = [(folder / f"{Path(newest).name}.{shard}").stat().st_size for shard in SHARDS]
    assert min(sizes) > 10 * 4, "each ps has written what it holds"


def test_another_run_goes_on_with_the_sharded_checkpoint(trained: Program) -> None:
    trained.configure(resume_from=run(trained)["id"])
    trained.set("train_steps", "340")
    trained.up()
    assert min(steps(trained)) > 300
    assert trained.outputs()["state"] == "succeeded"
    trained.destroy()


def curves(endpoint: str) -> dict[str, Any]:
    """Run to the names of the scalars that TensorBoard has of it; nothing while it does not answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{endpoint}/data/plugin/scalars/tags", timeout=10) as found:
            known: dict[str, Any] = json.load(found)
            return known
    except OSError:
        return {}


def test_the_head_of_the_template_is_the_stacks_configuration(
    programs: Callable[[str], Program], tmp_path: Path
) -> None:
    program = programs("marathon_mnist")
    shared, data = tmp_path / "shared", tmp_path / "data"
    shared.mkdir()
    shutil.move(program.program / "data", data)
    settings = {"name": "digits", "data_dir": str(data), "train_dir": str(shared), "train_steps": "20"}
    for name, value in settings.items():
        program.set(name, value)
    program.configure(ps=1, workers=1, tensorboard=True, wait="8m")
    program.up()
    outputs = program.outputs()
    assert outputs["state"] == "succeeded"
    assert {*program.statuses()} == {"ps-0", "worker-0", "tensorboard-0"}
    assert "worker-0 did 20 steps" in program.log("worker-0", "digits")
    (run,) = [path for path in shared.iterdir() if path.is_dir()]
    assert (run / "checkpoint").is_file()
    endpoint = outputs["endpoints"]["tensorboard-0"]
    until(lambda: "loss" in curves(endpoint).get(run.name, {}), "the run's loss in TensorBoard", 240)
    program.destroy()
