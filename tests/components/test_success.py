"""What becomes of the other programs when the run has succeeded. Whose success that is: `unit/agent/test_reconcile.py`."""

from tests.components.conftest import WAITS, Standing
from tests.components.processes import alive
from tests.unit.report.test_run_history import stored
from tests.waiting import until

CHECKPOINTS = """
import signal, sys
from steps import begin, hostname, wait_for

def save(*_):
    print("saved", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
begin()
wait_for(hostname)
"""
"""Saves when it is told to stop."""


def test_worker_0_decides_when_told_so(cluster: Standing) -> None:
    cluster.up(WAITS, chief=1, workers=2, success="worker-0", worker_timeout="0")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["stopped (run finished)", "succeeded", "stopped (run finished)"]


def test_a_slower_worker_and_its_ps_have_time_to_end_after_worker_0(cluster: Standing) -> None:
    cluster.up(WAITS, ps=1, workers=2, worker_timeout="1h")
    ps, slow = cluster.until_started("ps-0"), cluster.until_started("worker-1")
    cluster.open("worker-0")
    until(lambda: cluster.look().state == "succeeded", "the run has succeeded")
    for hostname in ("ps-0", "worker-1"):
        for _ in range(2):
            cluster.until_reported(hostname)
    assert alive(ps)
    assert alive(slow)
    assert not cluster.look().finished
    assert " left to end by itself (`worker_timeout`)." in cluster.look().status
    cluster.open("worker-1")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["stopped (run finished)", "succeeded", "succeeded"]


def test_a_worker_that_does_not_end_in_time_is_stopped(cluster: Standing) -> None:
    cluster.up(WAITS, workers=2, worker_timeout="1s")
    cluster.until_started("worker-1")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["succeeded", "stopped (run finished)"]


def test_what_is_stopped_has_its_grace_to_save(cluster: Standing) -> None:
    cluster.up(CHECKPOINTS, ps=1, workers=1, stop_grace_period="30s")
    cluster.until_started("ps-0")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert seen.tasks[0]["status"] == "stopped (run finished)"
    assert cluster.output("ps-0") == b"saved\n"


def test_what_does_not_heed_is_killed_after_its_grace(cluster: Standing) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    cluster.up(deaf + WAITS, ps=1, workers=1, stop_grace_period="1s")
    cluster.until_started("ps-0")
    cluster.open("worker-0")
    cluster.until_state("succeeded")
    until(lambda: not alive(cluster.started("ps-0")[0]), "ps-0 has gone")


EVALUATES = """
import os, pathlib
from steps import begin, hostname, wait_for

begin()
wait_for(hostname)
if hostname == "evaluator-0":
    (pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"]) / "best.keras").write_text("exported")
    print("accuracy: 0.97", flush=True)
"""


def test_the_last_checkpoint_is_evaluated_after_the_success_and_counts(cluster: Standing) -> None:
    cluster.up(EVALUATES, chief=1, evaluator=1, stop_grace_period="1s", metrics={"accuracy": r"accuracy: (\S+)"})
    cluster.until_running("evaluator-0")
    cluster.open("chief-0")
    until(lambda: cluster.look().decided, "the run has succeeded")
    result = cluster.job().result
    assert result is not None
    until(lambda: cluster.last_report("evaluator-0") > result.at + 2.0, "the evaluator runs after `stop_grace_period`")
    seen = cluster.look()
    assert (seen.state, seen.finished, cluster.status("evaluator-0")) == ("succeeded", False, "running")
    assert "Waiting for evaluator-0 to evaluate the last checkpoint, at most until " in seen.status
    assert not cluster.job().uploads, "artifacts are uploaded when the evaluator has ended"
    cluster.open("evaluator-0")
    until(lambda: cluster.look().artifacts, "the artifacts are stored")
    seen = cluster.look()
    assert [row["status"] for row in seen.tasks] == ["succeeded", "succeeded"]
    assert seen.metrics == {"accuracy": 0.97}
    assert [row["name"] for row in seen.artifacts] == ["best.keras"]
    assert (stored(cluster.job(), now=seen.state).ended or 0.0) > result.at + 2.0
