"""After the success of a run, a worker that does nothing is not waited for; one that still works is."""

from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.simulation import World
from tfdeploy.agent import sync
from tfdeploy.agent.control.end_policy import finishing_workers

DEFAULT = 6.0


def succeeded(**args: Any) -> World:
    """A run that has just succeeded by worker 0, or by its chief; its other tasks run."""
    world = World(**{"workers": 3, **args})
    world.come()
    world.exit("chief-0" if args.get("chief") else "worker-0")
    return world


def quiet(world: World, hostname: str, seconds: float) -> None:
    """This program has done nothing for so long."""
    world.launchers[hostname].quiet_seconds = seconds
    world.settle()


@pytest.mark.parametrize(
    ("args", "worker_timeout", "quiet_timeout"),
    [
        ({"workers": 2}, 60.0, DEFAULT),
        ({"ps": 1, "workers": 2}, 60.0, DEFAULT),
        ({"chief": 1, "workers": 2}, 60.0, DEFAULT),
        ({"chief": 1, "ps": 1, "workers": 2}, 0.0, DEFAULT),
        ({"chief": 1, "ps": 1, "gpu_workers": 2}, 0.0, DEFAULT),
        ({"chief": 1, "ps": 1, "workers": 2, "tf_config_master": True}, 0.0, DEFAULT),
        ({"chief": 1, "ps": 1, "workers": 2, "success": "worker-0"}, 60.0, DEFAULT),
        ({"chief": 1, "ps": 1, "workers": 2, "worker_timeout": "1m"}, 60.0, DEFAULT),
        ({"chief": 1, "ps": 1, "workers": 2, "worker_timeout": "2m"}, 120.0, 0.0),
        ({"workers": 2, "worker_timeout": "10m"}, 600.0, 0.0),
        ({"workers": 2, "worker_timeout": "0"}, 0.0, 0.0),
    ],
)
def test_how_long_workers_are_waited_for_by_default(
    args: dict[str, Any], worker_timeout: float, quiet_timeout: float
) -> None:
    run = plan(**args).run
    assert (run.worker_timeout, run.quiet_timeout) == (worker_timeout, quiet_timeout)


def test_workers_that_only_serve_a_chief_are_stopped_at_once() -> None:
    world = succeeded(chief=1, ps=1, workers=2)
    assert world.running() == ""


def test_a_worker_that_does_nothing_is_stopped_and_one_that_works_is_not() -> None:
    world = succeeded(ps=1)
    quiet(world, "worker-1", DEFAULT - 0.1)
    assert world.running() == "ps-0/1, worker-1/1, worker-2/1"
    quiet(world, "worker-1", DEFAULT)
    assert world.running() == "ps-0/1, worker-2/1"
    world.wait(59.0)
    assert world.running() == "ps-0/1, worker-2/1", "it works, and its parameter server serves it"
    quiet(world, "worker-2", DEFAULT)
    assert world.running() == ""
    assert world.states().count("stopped (run finished)") == 3


@pytest.mark.parametrize("moment", ["before the success", "with another `worker_timeout`", "a launcher of 0.1.0"])
def test_a_quiet_worker_is_waited_for(moment: str) -> None:
    args = {"worker_timeout": "2m"} if moment.startswith("with") else {}
    world = World(ps=1, workers=3, **args)
    world.come()
    if moment.startswith("before"):
        quiet(world, "worker-1", 3600.0)
        world.launchers["worker-1"].quiet_seconds = 0.0
    world.exit("worker-0")
    if moment.startswith("with"):
        quiet(world, "worker-1", 50.0)
    world.wait(59.0)
    assert world.running() == "ps-0/1, worker-1/1, worker-2/1"


def test_a_worker_that_prints_while_it_is_stopped_is_not_started_again() -> None:
    world = succeeded()
    world.saving.add("worker-1")
    quiet(world, "worker-1", DEFAULT)
    quiet(world, "worker-1", 0.0)
    assert [task.hostname for task in finishing_workers(world.job, world.now)] == ["worker-2"]
    world.restart_controller()
    assert world.sync("worker-1").action == sync.STOP


def test_launchers_observe_their_programs_only_after_the_success() -> None:
    world = World(workers=2)
    world.come()
    assert not world.sync("worker-1").observe_activity
    world.exit("worker-0")
    assert world.sync("worker-1").observe_activity
    explicit = succeeded(worker_timeout="2m")
    assert not explicit.sync("worker-1").observe_activity
