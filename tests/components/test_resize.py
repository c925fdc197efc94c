"""A live cluster grows, shrinks, and gets other limits."""

from itertools import pairwise
from typing import Any

from tests.components.conftest import WAITS, Standing
from tests.waiting import until
from tfdeploy.agent.model.events import SETTINGS_CHANGED, TASK_STARTED

EATS_WHEN_TOLD = """
from steps import begin, wait_for

begin()
wait_for("eat")
eaten = bytearray(300 * 1024 * 1024)
wait_for("gate")
"""


def test_a_changed_limit_restarts_the_tasks_of_the_job_one_at_a_time_in_order(cluster: Standing) -> None:
    """A changed grace restarts nobody."""
    cluster.run(WAITS, ps=1, workers=3, stop_grace_period="5s")
    before, launcher = cluster.look().endpoints, cluster.pid("worker-0")
    cluster.limit("worker-0", "worker-1", "worker-2", ps=1, workers=3, stop_grace_period="50s")
    assert (cluster.pid("worker-0"), cluster.job().spec.grace) == (launcher, 50)
    limits: dict[str, Any] = {}
    for times, changed in ((2, {"memory": "1GiB"}), (3, {"nice": 5})):
        limits |= changed
        known = len(cluster.events())
        args: dict[str, Any] = {"ps": 1, "workers": 3, "stop_grace_period": "50s", "jobs": {"worker": limits}}
        cluster.limit("worker-2", "worker-0", "worker-1", **args)
        cluster.until_running("worker-0", "worker-1", "worker-2", times=times)
        until(lambda: not cluster.job().restart_queue, "all have their turn behind them")
        happened = [(event.kind, event.task, event.attempt) for event in cluster.events()[known:]]
        restarted = [task for kind, task, _ in happened if kind == SETTINGS_CHANGED]
        assert restarted == ["worker-0", "worker-1", "worker-2"]
        for before_it, name in pairwise(restarted):
            assert happened.index((TASK_STARTED, before_it, times)) < happened.index((SETTINGS_CHANGED, name, 0))
    assert [len(cluster.started(name)) for name in ("ps-0", "worker-0", "worker-1", "worker-2")] == [1, 3, 3, 3]
    assert cluster.look().endpoints == before


def test_a_changed_limit_holds_from_the_restart_on(cluster: Standing) -> None:
    cluster.run(EATS_WHEN_TOLD, workers=1)
    cluster.limit("worker-0", workers=1, jobs={"worker": {"memory": "150MiB"}}, script=EATS_WHEN_TOLD)
    cluster.until_running("worker-0", times=2)
    cluster.open("eat")
    assert cluster.until_state("failed").reason == "worker-0 ran out of memory"
