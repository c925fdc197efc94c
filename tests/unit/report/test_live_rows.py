"""The rows of a cluster while `pulumi up` waits: what each says, and how often."""

from dataclasses import replace
from typing import Any

from tests.unit.cases import plan, spec
from tests.unit.report.test_update_wait import sight
from tests.unit.simulation import World, running
from tfdeploy.backends.base import ObservedState
from tfdeploy.report.expected_state import expected_state
from tfdeploy.report.report import Report, report
from tfdeploy.report.update_wait import LiveRows


def reported(seen: ObservedState, **args: Any) -> Report:
    return report(expected_state(plan(**args), spec(**args)), seen)


def test_a_training_task_shows_step_goal_time_speed_and_loss() -> None:
    rows, world = LiveRows(), running(ps=1, workers=1)
    seen = sight(world, (10.0, "step 100 of 1000 loss 0.5"), (12.0, "step 200 of 1000 loss 0.25"))
    assert rows.changes(reported(seen, ps=1, workers=1), 0.0) == {
        "ps-0": "running",
        "worker-0": "running  200/1000  16s left  50.0 steps/s  loss 0.25 █▁",
        "cluster": "running",
        "run": "more: tfdeploy status --watch",
    }


def test_a_task_without_steps_shows_its_last_line_that_tensorflow_does_not_print_at_each_start() -> None:
    noise = "I0000 00:00:1795409391.559713    3977 grpc_server_lib.cc:467] Started server"
    seen = sight(running(workers=1), (1.0, "a"), (2.0, "loading data"), (3.0, noise))
    assert LiveRows().changes(reported(seen, workers=1), 0.0)["worker-0"] == "running  loading data"


def test_a_task_that_does_not_run_shows_its_state_and_the_cluster_why() -> None:
    world = World(workers=2)
    world.come("worker-0")
    shown = LiveRows().changes(reported(sight(world), workers=2), 0.0)
    assert (shown["worker-0"], shown["worker-1"]) == ("waiting for worker-1", "scheduled")
    assert shown["cluster"].startswith("starting  waiting for worker-1 since ")


def test_the_cost_is_in_the_row_of_the_cluster() -> None:
    seen = reported(sight(running(workers=1)), workers=1)
    costs = {
        "running  $0.0412 so far, $0.30/h": {"spent": 0.0412, "per_hour": 0.3},
        "running  $0.30/h": {"spent": None, "per_hour": 0.3},
        "running": {"spent": None, "per_hour": None},
    }
    for text, cost in costs.items():
        latest = replace(seen, cost=cost)  # type: ignore[arg-type]
        assert LiveRows().changes(latest, 0.0)["cluster"] == text


def test_only_changes_are_shown_and_at_most_once_a_second() -> None:
    rows, world = LiveRows(), running(workers=1)
    first = reported(sight(world, (1.0, "step 1")), workers=1)
    second = reported(sight(world, (1.0, "step 1"), (2.0, "step 2")), workers=1)
    assert rows.changes(first, 0.0)["worker-0"] == "running  step 1"
    assert rows.changes(second, 0.9) == {}
    assert rows.changes(second, 1.0) == {"worker-0": "running  step 2  1.0 steps/s"}
    assert rows.changes(second, 2.0) == {}
