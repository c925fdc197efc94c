"""After the success of a run the other workers have `worker_timeout` to end by themselves."""

from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.simulation import World, running
from tfdeploy.agent.control.end_policy import finishing_workers
from tfdeploy.agent.model import sync


def succeeded(**args: Any) -> World:
    """A run that has just succeeded by worker 0, or by its chief; its other tasks run."""
    world = running(**{"workers": 3, **args})
    world.exit("chief-0" if args.get("chief") else "worker-0")
    return world


@pytest.mark.parametrize(
    ("args", "worker_timeout"),
    [
        ({"workers": 2}, 60.0),
        ({"ps": 1, "workers": 2}, 60.0),
        ({"chief": 1, "workers": 2}, 60.0),
        ({"chief": 1, "ps": 1, "workers": 2}, 0.0),
        ({"chief": 1, "ps": 1, "gpu_workers": 2}, 0.0),
        ({"chief": 1, "ps": 1, "workers": 2, "tf_config_master": True}, 0.0),
        ({"chief": 1, "ps": 1, "workers": 2, "success": "worker-0"}, 60.0),
        ({"chief": 1, "ps": 1, "workers": 2, "worker_timeout": "1m"}, 60.0),
        ({"workers": 2, "worker_timeout": "10m"}, 600.0),
        ({"workers": 2, "worker_timeout": "0"}, 0.0),
    ],
)
def test_how_long_workers_are_waited_for_by_default(args: dict[str, Any], worker_timeout: float) -> None:
    assert plan(**args).run.worker_timeout == worker_timeout


def test_a_worker_that_is_stopped_is_not_started_again() -> None:
    world = succeeded(worker_timeout="1m")
    world.saving.add("worker-1")
    world.wait(60.0)
    assert not finishing_workers(world.job, world.now)
    world.restart_controller()
    assert world.sync("worker-1").action == sync.STOP
