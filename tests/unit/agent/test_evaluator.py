"""After the success of a run its evaluator evaluates the last checkpoint; and what its failure means."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.simulation import World, running
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import AT_BUDGET

DEFAULT = 600.0
SUCCEEDED = "worker-0 succeeded, evaluator-0 "


def begun(**args: Any) -> World:
    return running(**{"workers": 1, "evaluator": 1, **args})


def succeeded(**args: Any) -> World:
    """A run that has just succeeded by worker 0; its evaluator runs."""
    world = begun(**args)
    world.exit("worker-0")
    return world


@pytest.mark.parametrize(
    ("args", "timeout"),
    [({}, DEFAULT), ({"evaluator_timeout": "1h"}, 3600.0), ({"evaluator_timeout": "0"}, 0.0), ({"evaluator": 0}, 0.0)],
)
def test_how_long_an_evaluator_is_waited_for(args: dict[str, Any], timeout: float) -> None:
    run = plan(**{"workers": 1, "evaluator": 1, **args}).run
    assert run.evaluator_timeout == timeout
    assert ("evaluator_timeout" in run.to_inputs()) is bool(timeout)


def test_an_evaluator_that_works_has_its_time_and_the_run_ends_with_it() -> None:
    world = succeeded()
    world.wait(DEFAULT - 1)
    assert world.states() == f"{SUCCEEDED}running"
    world.exit("evaluator-0")
    assert world.states() == f"{SUCCEEDED}succeeded"
    assert world.done()


@pytest.mark.parametrize("end", ["no timeout", "a failure", "a stop"])
def test_an_evaluator_without_time_is_stopped_at_once(end: str) -> None:
    world = begun(**({"evaluator_timeout": "0"} if end == "no timeout" else {}))
    world.exit("worker-0", int(end == "a failure"))
    if end == "a stop":
        assert world.running() == "evaluator-0/1"
        world.stop()
    assert world.running() == ""


def test_a_budget_that_is_used_up_after_the_success_stops_the_evaluator() -> None:
    world = begun()
    world.pay(budget=5.0, cost_per_hour=60.0)
    world.exit("worker-0")
    world.wait(299.0)
    assert world.running() == "evaluator-0/1"
    world.wait(1.0)
    assert world.running() == ""
    assert world.verdict() == "succeeded: worker-0 succeeded"
    stopped = Event(events.STOP_REQUESTED, tasks=["evaluator-0"], reason=AT_BUDGET)
    assert [replace(event, at=0.0) for event in world.events if event.kind == events.STOP_REQUESTED] == [stopped]


@pytest.mark.parametrize(("how", "attempt"), [("killed", 3), ("its launcher lost", 2), ("its machine shut down", 2)])
def test_an_evaluator_that_is_killed_after_the_success_starts_again(how: str, attempt: int) -> None:
    world = begun(restart={"maximum": 2, "on": ["signal"], "backoff": "5s"})
    world.exit("worker-0")
    if how == "killed":
        world.exit("evaluator-0", 137, signal="SIGKILL")
        assert world.running() == "evaluator-0/2"
        world.exit("evaluator-0", 137, signal="SIGKILL")
        assert world.states().startswith(f"{SUCCEEDED}restarting")
        world.wait(5.0)
    else:
        if how == "its machine shut down":
            world.launchers["evaluator-0"].end_child(143, world.now, "SIGTERM", cause="interrupted")
            world.sync("evaluator-0")
        world.lose("evaluator-0")
        world.wait(1.0)
        world.come("evaluator-0", port=30_000)
    assert world.running() == f"evaluator-0/{attempt}"
    assert world.launchers["evaluator-0"].address_book
    world.exit("evaluator-0")
    assert world.states() == f"{SUCCEEDED}succeeded"


@pytest.mark.parametrize(("required", "state"), [(True, "stopped (run failed)"), (False, "running")])
def test_an_evaluator_that_fails_fails_the_run_unless_it_is_not_required(required: bool, state: str) -> None:
    world = begun(jobs={"evaluator": {"required": required}})
    world.exit("evaluator-0", 1)
    assert world.states() == f"worker-0 {state}, evaluator-0 failed"
    if not required:
        world.exit("worker-0")
        assert world.states() == f"{SUCCEEDED}failed"
    assert world.job.result is not None
    assert world.job.result.state == ("failed" if required else "succeeded")
