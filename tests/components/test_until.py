"""A program that would train for ever, and the metric that ends it. The record on disk is read: nobody observes the run."""

import pytest

from tests.components.conftest import Standing
from tests.components.test_artifacts import files, until_uploaded
from tests.waiting import until
from tfdeploy.agent.model.run_state import BUDGET, UNTIL, ReachedMetric, RunResult

TRAINS = """
import os, pathlib, signal, sys
from steps import begin, hostname, wait_for

def store(step):
    train = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
    for suffix in (".index", ".data-00000-of-00001"):
        (train / f"model.ckpt-{step}{suffix}").write_text(f"{step}")
    (train / "checkpoint").write_text(f'model_checkpoint_path: "{train}/model.ckpt-{step}"\\n')

def save(*_):
    if hostname == "worker-0":
        store(4200)
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
if hostname == "worker-0":
    store(10)
begin()
print("step 10 accuracy: 0.5", flush=True)
wait_for("gate")
print("step 4200 accuracy: 0.953", flush=True)
wait_for("end")
"""


ARGS = {"metrics": {"accuracy": r"accuracy: (\S+)"}, "until": {"accuracy": ">= 0.95"}}
STORED = {
    "checkpoint": b'model_checkpoint_path: "model.ckpt-4200"\nall_model_checkpoint_paths: "model.ckpt-4200"\n',
    "model.ckpt-4200.index": b"4200",
    "model.ckpt-4200.data-00000-of-00001": b"4200",
}
"""The checkpoint that the program has saved at SIGTERM, as artifacts."""

REACHED = ReachedMetric("accuracy", 0.953, ">=", 0.95, "worker-0", 1, 4200)


def until_result(cluster: Standing) -> RunResult:
    """Wait until the record on disk has the result."""
    return until(lambda: cluster.job().result, "the run has a result", seen=cluster.events)


def test_a_metric_ends_a_program_that_trains_for_ever_and_leaves_it_time_to_save(cluster: Standing) -> None:
    cluster.up(TRAINS, ps=1, workers=2, **{**ARGS, "stop_grace_period": "30s"})
    for hostname in ("ps-0", "worker-0", "worker-1"):
        cluster.until_started(hostname)
    assert cluster.job().result is None
    cluster.open()
    result = until_result(cluster)
    assert (result.state, result.cause, result.reached) == ("succeeded", UNTIL, [REACHED])
    for hostname in ("ps-0", "worker-0", "worker-1"):
        until(lambda name=hostname: cluster.recorded(name) == "stopped", f"{hostname} is stopped")  # type: ignore[misc]
        assert cluster.output(hostname).endswith(b"saved\n")
    seen = cluster.until_state("succeeded")
    assert seen.status.endswith("Run succeeded: accuracy 0.953 reached >= 0.95 at step 4,200.")
    assert {row["status"] for row in seen.tasks} == {"stopped (run finished)"}
    assert seen.finished
    assert [row["name"] for row in until_uploaded(cluster)] == ["model.ckpt-4200"]
    assert files(cluster) == STORED


def test_a_controller_that_is_killed_decides_when_it_is_back(cluster: Standing) -> None:
    cluster.up(TRAINS, workers=1, **ARGS)
    cluster.until_running("worker-0")
    cluster.kill("controller")
    cluster.open()
    assert until_result(cluster).reached == [REACHED]
    assert len(cluster.started("worker-0")) == 1


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_that_has_ended_by_itself_has_its_own_result(cluster: Standing, code: int) -> None:
    """Its output arrives together with its end."""
    cluster.up(
        f"from steps import begin\nbegin()\nprint('accuracy: 0.99')\nraise SystemExit({code})", workers=1, **ARGS
    )
    result = until_result(cluster)
    assert result.state == ("failed" if code else "succeeded")
    assert result.cause != UNTIL


def test_a_budget_that_is_used_up_stops_the_run(cluster: Standing) -> None:
    cluster.declare(TRAINS, workers=1)
    cluster.stand_tasks()
    cluster.submit(budget=1000.0, cost_per_hour=3600.0)
    cluster.until_running("worker-0")
    cluster.submit(budget=1.0, cost_per_hour=3600.0)
    result = until_result(cluster)
    assert (result.state, result.cause, result.budget) == ("stopped", BUDGET, 1.0)
    assert result.spent >= 1.0
    until(lambda: cluster.recorded("worker-0") == "stopped", "worker-0 is stopped")
    assert [row["name"] for row in until_uploaded(cluster)] == ["model.ckpt-4200"]
    assert files(cluster) == STORED
