"""The budget of a run: what its machines have cost, as the controller counts it. Pure."""

from typing import Optional

from ..run_state import BUDGET, STOPPED, RunResult, RunState

_HOUR = 3600.0


def spent(run: RunState, now: float) -> float:
    """What the machines of the cluster have cost, in USD: until the run was submitted, and since then at their price per hour."""
    return run.spec.cost_before + run.spec.cost_per_hour * max(0.0, now - run.cost_since) / _HOUR


def over_budget(run: RunState, now: float) -> Optional[RunResult]:
    """The end of a run as soon as its machines have cost the budget; None before that, and without a budget."""
    budget = run.spec.budget
    cost = spent(run, now)
    if not budget or cost < budget:
        return None
    return RunResult(STOPPED, BUDGET, now, spent=round(cost, 4), budget=budget)
