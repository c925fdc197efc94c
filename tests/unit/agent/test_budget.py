"""A budget that is used up ends the run: what is counted, and when."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.cases import plan, stored_run
from tests.unit.simulation import World
from tfdeploy.agent.control import move
from tfdeploy.agent.control.clock import Clock
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.end_policy import spent
from tfdeploy.agent.record.record import Record

HOUR = 3600.0


def world(**cost: float) -> World:
    made = World(ps=1, workers=2, tensorboard=True)
    made.pay(**cost)
    made.come()
    return made


TO_END = ", and the rest is for the time until they terminate themselves"


@pytest.mark.parametrize(("to_end", "hours", "cost", "rest"), [(0.0, 2.0, "$5.00", ""), (0.5, 1.75, "$4.50", TO_END)])
def test_a_run_is_stopped_when_its_machines_cost_the_budget(to_end: float, hours: float, cost: str, rest: str) -> None:
    """In time for them to terminate themselves within it."""
    job = world(budget=5.0, cost_per_hour=2.0, before=1.0, cost_to_end=to_end)
    job.wait(hours * HOUR - 1)
    assert job.verdict() == "none"
    job.wait(1)
    assert job.verdict() == f"stopped: its machines have cost {cost} of the budget of $5.00{rest}"
    assert job.running() == "tensorboard-0/1"
    assert job.states().startswith("ps-0 stopped (budget), worker-0 stopped (budget)")


def test_a_budget_that_is_used_up_before_stops_the_run_before_its_first_start() -> None:
    job = world(budget=5.0, cost_per_hour=2.0, before=5.0)
    assert "worker" not in job.running()
    assert job.job.result is not None


@pytest.mark.parametrize("cost", [{}, {"cost_per_hour": 9.0, "before": 100.0}, {"budget": 5.0}])
def test_without_a_budget_or_a_price_nothing_is_stopped(cost: dict[str, float]) -> None:
    job = world(**cost)
    job.wait(1000 * HOUR)
    assert job.verdict() == "none"


def test_another_up_counts_on_at_its_price() -> None:
    job = world(cost_per_hour=2.0)
    job.wait(2 * HOUR)
    job.pay(budget=5.0, cost_per_hour=1.0)
    job.wait(HOUR - 1)
    assert job.verdict() == "none"
    job.wait(1)
    assert job.verdict().startswith("stopped")
    assert spent(job.job, job.now) == 5.0


@pytest.mark.parametrize("returns", [False, True])
def test_another_run_of_the_cluster_counts_on(tmp_path: Path, returns: bool) -> None:
    """Also one that was replaced, and returns."""
    wall = 1_000_000.0
    target = Controller(Record(tmp_path), clock=Clock(lambda: wall, lambda: wall))
    first, second = (replace(plan(workers=1).run, id=name, cost_per_hour=2.0) for name in ("first", "second"))
    for spec in (first, second, first) if returns else (first, second):
        target.submit_run(spec)
        wall += HOUR
    run = target.snapshot()
    assert run is not None
    assert run.spec.id == ("first" if returns else "second")
    assert spent(run, wall) == (6.0 if returns else 4.0)


def test_of_a_run_that_arrives_its_former_machines_cost_nothing_after_its_last_sign_of_life() -> None:
    job = world(cost_per_hour=2.0)
    job.wait(HOUR)
    job.come()
    seen = max(task.seen for task in job.job.tasks.values())
    until = spent(job.job, seen)
    move.arrive(job.job)
    assert until > 0
    assert spent(job.job, job.now + 1000 * HOUR) == until


class Paid:
    """A controller whose run costs $2 an hour and has a budget, with clocks that a test turns."""

    def __init__(self, folder: Path, budget: float) -> None:
        self.record, self.wall, self.steady = Record(folder), 1_000_000.0, 50.0
        self.start()
        self.controller.submit_run(replace(plan(workers=1).run, budget=budget, cost_per_hour=2.0))

    def start(self) -> None:
        self.controller = Controller(self.record, clock=Clock(lambda: self.wall, lambda: self.steady))

    def ends_after(self, seconds: float) -> bool:
        self.wall, self.steady = self.wall + seconds, self.steady + seconds
        self.controller.tick()
        return stored_run(self.record).result is not None


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_clock_that_is_set_costs_nothing(tmp_path: Path, step: float) -> None:
    paid = Paid(tmp_path, 1.0)
    paid.wall += step
    assert not paid.ends_after(0.0)
    assert not paid.ends_after(HOUR / 2 - 1)
    assert paid.ends_after(2.0)


@pytest.mark.parametrize(("step", "counted"), [(-24 * HOUR, 0.0), (24 * HOUR, HOUR)])
def test_a_wrong_clock_at_the_start_does_not_use_up_the_budget(tmp_path: Path, step: float, counted: float) -> None:
    """As on a machine that boots and gets the time later: for the time without a controller, an hour at most is counted."""
    paid = Paid(tmp_path, 3.0)
    assert not paid.ends_after(HOUR / 4)
    paid.wall, paid.steady = paid.wall + step, 1.0
    paid.start()
    assert not paid.ends_after(0.0)
    paid.wall -= step
    assert not paid.ends_after(1.0)
    assert not paid.ends_after(1.25 * HOUR - counted - 3)
    assert paid.ends_after(3.0)
