"""What a look must know of what was asked for: so that it needs neither the program nor Pulumi. Pure, plain JSON both ways."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .placement import Machine
from .plan import Plan
from .spec import ClusterSpec


@dataclass(frozen=True)
class TaskOutline:
    """One task, and where it was to stand."""

    hostname: str
    job: str
    index: int
    machine: str = ""
    command: str = ""
    """Its own; empty for the cluster's."""


@dataclass(frozen=True)
class MachineOutline:
    """One machine, as its row in the table has it before anybody looks."""

    machine: str
    role: str
    provider: str
    region: str
    size: str
    public_ip: str


@dataclass(frozen=True)
class Outline:
    """The shape of a cluster."""

    tasks: Sequence[TaskOutline]
    machines: Sequence[MachineOutline] = ()
    command: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Name to pattern."""
    log_lines: int = 0
    serve: bool = False
    idle: float = 0.0
    lifetime: float = 0.0
    """Seconds after which machines end themselves."""

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Outline":
        """The same, back again."""
        tasks = [TaskOutline(**one) for one in data["tasks"]]
        return cls(**{**data, "tasks": tasks, "machines": [MachineOutline(**one) for one in data["machines"]]})


def outline(plan: Plan, spec: ClusterSpec) -> Outline:
    """That of a cluster which was asked for and planned."""
    return Outline(
        tasks=[
            TaskOutline(task.hostname, task.job, task.index, task.machine, plan.own_command(task.job))
            for task in plan.tasks
        ],
        machines=list(map(_machine, plan.machines)),
        command=plan.command,
        metrics=dict(spec.metrics),
        log_lines=spec.log_lines,
        serve=spec.serve,
        idle=spec.fleet.idle,
        lifetime=spec.fleet.lifetime,
    )


def outline_of(job: Mapping[str, Any] | None) -> Outline:
    """That of a cluster of which only its job is known, as a view has it (`agent.record.Record.view`)."""
    if job is None:
        return Outline(tasks=())
    tasks = [TaskOutline(one["hostname"], one["job"], one["index"], one["machine"]) for one in job["tasks"].values()]
    names = dict.fromkeys(task.machine for task in tasks if task.machine)
    machines = [MachineOutline(name, "", "", "", "", "") for name in names]
    return Outline(tasks=tasks, machines=machines, serve=bool(job["run"].get("serve")))


def _machine(machine: Machine) -> MachineOutline:
    return MachineOutline(machine.name, machine.role, machine.provider, machine.region, machine.size, machine.public_ip)
