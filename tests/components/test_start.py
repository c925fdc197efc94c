"""The start barrier: nobody trains before everybody has come."""

from tests.components.conftest import WAITS, Standing
from tfdeploy.agent.model.events import BARRIER_PASSED


def test_a_task_that_has_not_come_is_named_by_those_that_wait(cluster: Standing) -> None:
    cluster.declare(WAITS, ps=2, workers=1)
    cluster.stand(without=("ps-1",))
    cluster.until_status("worker-0", "waiting for ps-1")
    cluster.until_status("ps-0", "waiting for ps-1")
    assert cluster.status("ps-1") == "scheduled"
    assert cluster.look().state == "starting"
    assert not cluster.started("worker-0")


def test_all_start_when_the_last_one_has_come(cluster: Standing) -> None:
    cluster.declare(WAITS, ps=1, workers=2)
    cluster.stand(without=("worker-1",))
    cluster.until_status("worker-0", "waiting for worker-1")
    cluster.stand()
    for hostname in ("ps-0", "worker-0", "worker-1"):
        cluster.until_started(hostname)
    assert (BARRIER_PASSED, "") in cluster.happened()


def test_tasks_are_told_the_addresses_of_all(cluster: Standing) -> None:
    cluster.up("import sys\nprint(*sys.argv[1:])", ps=1, workers=2, success="all-workers", restart={"maximum": 0})
    cluster.until_state("succeeded")
    ports = {row["hostname"]: row["address"] for row in cluster.look().tasks}
    assert cluster.output("worker-1").decode().split() == [
        "--job_name=worker",
        "--task_index=1",
        f"--ps_hosts={ports['ps-0']}",
        f"--worker_hosts={ports['worker-0']},{ports['worker-1']}",
    ]
    assert len(set(ports.values())) == 3


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
