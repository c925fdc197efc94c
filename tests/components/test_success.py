"""What becomes of the other programs when the run has succeeded. Whose success that is: `unit/agent/test_reconcile.py`."""

from tests.components.conftest import WAITS, Standing
from tests.unit.report.test_run_history import stored
from tests.waiting import until


def test_worker_0_decides_when_told_so(cluster: Standing) -> None:
    cluster.up(WAITS, chief=1, workers=2, success="worker-0", worker_timeout="0")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["stopped (run finished)", "succeeded", "stopped (run finished)"]


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
    cluster.run(EVALUATES, chief=1, evaluator=1, stop_grace_period="1s", metrics={"accuracy": r"accuracy: (\S+)"})
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
