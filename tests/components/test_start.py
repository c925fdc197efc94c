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
