"""States that the other tests do not come by, each reached for real."""

import time

from tests.components.conftest import WAITS, Standing
from tests.components.processes import halted
from tests.waiting import PATIENCE
from tfdeploy.backends.local.backend import BACKEND


def test_a_task_whose_launcher_has_gone_for_good_is_lost_and_a_stop_does_not_wait_for_it(cluster: Standing) -> None:
    """Whoever waited for it would wait for as long as it may take to stop."""
    cluster.run(WAITS, workers=2, stop_grace_period="5m")
    with halted(cluster.pid("worker-1")):
        cluster.supervisor().remove("worker-1", 0)
    assert cluster.status("worker-1") == "lost"
    assert cluster.status("worker-0") == "running"
    assert not BACKEND.runner.task_exists(cluster.task_props("worker-1"))
    cluster.stand()
    cluster.until_running("worker-1", times=2)

    with halted(cluster.pid("worker-1")):
        cluster.supervisor().remove("worker-1", 0)
    began = time.monotonic()
    BACKEND.runner.stop_run(cluster.run_props())
    assert time.monotonic() - began < PATIENCE < cluster.spec.stop_grace_period
    assert cluster.look().state == "stopped"


def test_a_task_that_has_not_come_is_named_by_those_that_wait(cluster: Standing) -> None:
    cluster.declare(WAITS, ps=2, workers=1)
    cluster.stand(without=("ps-1",))
    cluster.until_status("worker-0", "waiting for ps-1")
    cluster.until_status("ps-0", "waiting for ps-1")
    assert cluster.status("ps-1") == "scheduled"
    assert cluster.look().state == "starting"
    assert not cluster.started("worker-0")
