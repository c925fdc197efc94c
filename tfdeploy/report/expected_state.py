"""The expected state of a cluster: what a report needs of spec and plan, stored in the registry. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..agent.model.json_data import JsonData
from ..outputs import CostSummary

if TYPE_CHECKING:  # the registry needs this module, and the command the registry
    from ..agent.model.run_state import RunState
    from ..plan.plan import Plan
    from ..spec.cluster import ClusterSpec


@dataclass(frozen=True)
class ExpectedTask(JsonData):
    """One planned task, and its machine, where the plan has placed it."""

    hostname: str
    job: str
    index: int
    machine: str = ""
    command: str = ""
    """The command of its job; empty for that of the cluster."""


@dataclass(frozen=True)
class ExpectedMachine(JsonData):
    """One planned machine, or one that a task was placed on: the columns of its row that do not depend on the observed state."""

    machine: str
    role: str = ""
    provider: str = ""
    region: str = ""
    size: str = ""
    public_ip: str = ""


@dataclass(frozen=True)
class ExpectedState(JsonData):
    """The tasks and machines of a cluster, and the arguments that a report uses."""

    tasks: Sequence[ExpectedTask]
    machines: Sequence[ExpectedMachine] = ()
    command: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Name to pattern."""
    log_lines: int = 0
    serve: bool = False
    cost: CostSummary = field(default_factory=CostSummary)
    """What the plan knows of the output `cost`."""


def expected_state(plan: "Plan", spec: "ClusterSpec") -> ExpectedState:
    """The expected state of a planned cluster."""
    return ExpectedState(
        tasks=[
            ExpectedTask(task.hostname, task.job, task.index, task.machine, plan.own_command(task.job))
            for task in plan.tasks
        ],
        machines=[
            ExpectedMachine(item.name, item.role, item.provider, item.region, item.size, item.public_ip)
            for item in plan.machines
        ],
        command=plan.command,
        metrics=dict(spec.metrics),
        log_lines=spec.log_lines,
        serve=spec.standalone_servers,
        cost=plan.cost,
    )


def expected_of(run_state: "RunState | None") -> ExpectedState:
    """The expected state of a cluster of which only the run is known."""
    if run_state is None:
        return ExpectedState(tasks=())
    tasks = [ExpectedTask(task.hostname, task.job, task.index) for task in run_state.tasks.values()]
    return ExpectedState(tasks=tasks, serve=run_state.spec.serve)
