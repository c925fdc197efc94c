"""The start barrier: nobody trains before everybody has come."""

from tests.components.conftest import WAITS, Standing


def test_a_task_that_has_not_come_is_named_by_those_that_wait(cluster: Standing) -> None:
    cluster.declare(WAITS, ps=2, workers=1)
    cluster.stand(without=("ps-1",))
    cluster.until_status("worker-0", "waiting for ps-1")
    cluster.until_status("ps-0", "waiting for ps-1")
    assert cluster.status("ps-1") == "scheduled"
    assert cluster.look().state == "starting"
    assert not cluster.started("worker-0")


STRICT = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--steps')\nprint(parser.parse_args())"
)
SERVES = "import os, time\nif os.environ['TFDEPLOY_JOB_NAME'] == 'ps':\n    time.sleep(600)\n"


def test_a_program_that_refuses_unknown_flags_runs_with_flags_never(cluster: Standing) -> None:
    cluster.up(SERVES + STRICT, ps=1, workers=1, restart={"maximum": 0})
    cluster.until_state("failed")
    assert b"unrecognized arguments: --job_name=" in cluster.output("worker-0", "stderr")
    cluster.up(SERVES + STRICT, ps=1, workers=1, flags="never")
    cluster.until_state("succeeded")
    assert b"Namespace(steps=None)" in cluster.output("worker-0")
