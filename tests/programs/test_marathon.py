"""The program of people who come from Marathon: the chief's losses, sharded checkpoints, the head of the template as settings."""

import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_server import fetched
from tests.programs.program import Program
from tests.waiting import until
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.record.record import Record

pytestmark = pytest.mark.full

SHARDS = ("data-00000-of-00002", "data-00001-of-00002")
STEPS = 300


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One training, set by the head of the template alone, at which several tests look."""
    folder = tmp_path_factory.mktemp("trained")
    program = Program(folder / "marathon", "marathon_mnist")
    (folder / "shared").mkdir()
    shutil.move(program.program / "data", folder / "data")
    settings = {
        "name": "digits",
        "data_dir": str(folder / "data"),
        "train_dir": str(folder / "shared"),
        "train_steps": str(STEPS),
    }
    for name, value in settings.items():
        program.set(name, value)
    program.configure(ps=2, workers=2, tensorboard=True, log_lines=1000, wait="8m")
    program.up()
    yield program
    program.clean()


def steps(program: Program) -> list[int]:
    """The steps of which the chief told the loss."""
    return [int(step) for step in re.findall(r"^step (\d+) loss \d+\.\d{4}$", log(program, "worker-0"), re.MULTILINE)]


def log(program: Program, hostname: str) -> str:
    """All that a task has printed in the present run."""
    return program.log(hostname, "digits")


def run(program: Program) -> RunSpec:
    """The present run, as the record has it."""
    job = Record(program.places("digits").record).current()
    assert job is not None
    return job.spec


def curves(endpoint: str) -> dict[str, Any]:
    """Run to the names of the scalars that TensorBoard has of it; nothing while it does not answer."""
    known: dict[str, Any] = json.loads(fetched(f"http://{endpoint}/data/plugin/scalars/tags") or "{}")
    return known


def test_the_head_of_the_template_is_the_stacks_configuration(trained: Program) -> None:
    registered = [entry["cluster"]["name"] for entry in trained.registered()]
    assert registered == ["digits"]
    assert set(trained.statuses()) == {"ps-0", "ps-1", "worker-0", "worker-1", "tensorboard-0"}
    shared = trained.folder.parent / "shared"
    (folder,) = [path for path in shared.iterdir() if path.is_dir()]
    assert folder == Path(run(trained).train_dir)
    assert (folder / "checkpoint").is_file()
    endpoint = trained.outputs()["endpoints"]["tensorboard-0"]
    until(lambda: "loss" in curves(endpoint).get(folder.name, {}), "the run's loss in TensorBoard", 240)


def test_the_final_loss_is_an_output(trained: Program) -> None:
    outputs = trained.outputs()
    assert outputs["state"] == "succeeded"
    assert 0 < outputs["final_loss"] < 0.6
    assert f"final loss {outputs['final_loss']:.4f}" == outputs["logs"]["worker-0"][-1]
    statuses = trained.statuses()
    assert (statuses["worker-0"], statuses["worker-1"]) == ("succeeded", "succeeded")
    assert (statuses["ps-0"], statuses["ps-1"]) == ("stopped (run finished)", "stopped (run finished)")


def test_the_chief_tells_the_loss_of_each_step(trained: Program) -> None:
    told = steps(trained)
    (done,) = re.findall(r"^worker-0 did (\d+) steps$", log(trained, "worker-0"), re.MULTILINE)
    assert len(told) == int(done)
    assert len(told) == len(set(told))
    assert STEPS <= max(told) < STEPS + 10
    assert re.search(r"^worker-1 did [1-9]", log(trained, "worker-1"), re.MULTILINE), "all workers train"
    assert "final loss" not in log(trained, "worker-1")
    losses = [float(loss) for loss in re.findall(r"^step \d+ loss (\S+)$", log(trained, "worker-0"), re.MULTILINE)]
    # Worker 1 may have trained for a while when worker 0 begins: the first loss here is not that of the first step.
    assert losses[-1] < math.log(10) / 2, "a model that knows nothing of ten digits has the loss log(10)"


def test_variables_and_checkpoints_are_spread_over_both_ps(trained: Program) -> None:
    devices = dict(re.findall(r"^variable (\S+) on (\S+)$", log(trained, "worker-0"), re.MULTILINE))
    assert {device.rpartition("/device")[0] or device for device in devices.values()} == {
        "/job:ps/task:0",
        "/job:ps/task:1",
    }
    folder = Path(run(trained).train_dir)
    (newest,) = re.findall(r'^model_checkpoint_path: "(.+)"$', (folder / "checkpoint").read_text(), re.MULTILINE)
    sizes = [(folder / f"{Path(newest).name}.{shard}").stat().st_size for shard in SHARDS]
    assert min(sizes) > 10 * 4, "each ps has written what it holds"


def test_another_run_goes_on_with_the_sharded_checkpoint(trained: Program) -> None:
    """The other run has one ps, one worker and no TensorBoard: the configuration sets their numbers."""
    trained.configure(resume_from=run(trained).id, ps=1, workers=1, tensorboard=False)
    trained.set("train_steps", str(STEPS + 20))
    trained.up()
    assert STEPS < min(steps(trained)) <= max(steps(trained)) == STEPS + 20
    assert trained.outputs()["state"] == "succeeded"
    assert set(trained.statuses()) == {"ps-0", "worker-0"}
    trained.destroy()
