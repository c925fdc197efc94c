"""Spec and machines become a plan: what shall stand, and the run that it gets. Pure; its text is what tests compare.

Addresses are symbolic here (`ps-0:port`): which port a task gets is known only where it stands.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .agent import wiring
from .agent.states import TENSORBOARD
from .constraints import Constraint, parse
from .errors import PlacementError, SpecError
from .placement import Demand, Machine, Place, place, spares
from .quantities import counted
from .spec import ClusterSpec, JobSpec

LONGEST_HOSTNAME = 63
"""RFC 1123: a label of a host's name has at most 63 characters."""


@dataclass(frozen=True)
class TaskPlan:
    """One task: where it stands and what the engine must know of it."""

    hostname: str
    job: str
    index: int
    machine: str
    gpus: tuple[str, ...]
    memory: int
    cpus: float
    port: int
    """0 where any free one will do."""


@dataclass(frozen=True)
class Plan:
    """All that shall stand of one cluster."""

    cluster: str
    backend: str
    tasks: tuple[TaskPlan, ...]
    run: Mapping[str, Any]
    """What the keeper is given: plain JSON, see `docs/reference.md`."""
    machines: tuple[Machine, ...]
    warnings: tuple[str, ...] = ()
    unneeded: frozenset[str] = frozenset()
    """Machines that are gone and need not be made again, because the run is over."""

    @property
    def standing(self) -> tuple[TaskPlan, ...]:
        """The tasks that shall stand."""
        return tuple(task for task in self.tasks if task.machine not in self.unneeded)

    @property
    def places(self) -> list[str]:
        """Who goes where, a line for each machine; none where there is only one."""
        tasks = {
            machine.name: [task.hostname for task in self.tasks if task.machine == machine.name]
            for machine in self.machines
        }
        return (
            [f"  {name}: {', '.join(hostnames) or '-'}" for name, hostnames in tasks.items()] if len(tasks) > 1 else []
        )

    @property
    def command(self) -> str:
        """The command as the user wrote it."""
        return shlex.join(self.run["command"])

    def own_command(self, job: str) -> str:
        """What a job runs in the place of that; empty where it runs that."""
        return shlex.join(self.run["jobs"][job].get("command", []))

    @property
    def summary(self) -> str:
        """One line about it."""
        end = "they serve" if self.run["serve"] else f"success: {self.run['success']}"
        return f"{self.cluster} on {self.backend}: run {self.run['id']}, {counted(len(self.tasks), 'task')}, {end}"

    def __str__(self) -> str:
        return "\n".join([self.summary, *map(self._row, self.tasks)])

    def _row(self, task: TaskPlan) -> str:
        limits = f"cpus={task.cpus:g} memory={task.memory} gpus={','.join(task.gpus)}"
        book = [wiring.Entry(item.hostname, item.job, item.index, f"{item.hostname}:port") for item in self.tasks]
        mine = next(entry for entry in book if entry.hostname == task.hostname)
        run = dict(self.run)
        known = {**wiring.values(book, mine), **wiring.folders(run)}
        command = shlex.join(wiring.command_of(run, task.job, known))
        row = f"  {task.hostname} on {task.machine} {limits}\n    {command}"
        return row if task.job == TENSORBOARD else f"{row}\n    TF_CONFIG={wiring.tf_config(book, mine, run)}"


@dataclass(frozen=True)
class Given:
    """What of a run only the backend or the disk knows."""

    code: str = ""
    """The name of the archive of code; empty for none."""
    train_dir: str = ""
    data_dir: str = ""
    """Absolute, or URLs."""
    image: str = ""
    """What names the image; empty where there is none, or only the default."""


def make_plan(
    spec: ClusterSpec, machines: Sequence[Machine], given: Given, standing: Mapping[str, str] | None = None
) -> Plan:
    """The plan for a spec on these machines; `standing` is where tasks stand now, by hostname.

    Raises:
        PlacementError: the tasks do not fit.
        SpecError: a host's name is too long, or a constraint is none.
    """
    hostnames = [(job, index, f"{job.stem}-{index}") for job in spec.jobs for index in range(job.count)]
    for _, _, hostname in hostnames:
        if len(f"{spec.name}-{hostname}") > LONGEST_HOSTNAME:
            wrong = f"with {hostname!r} it has more than {LONGEST_HOSTNAME} characters"
            raise SpecError(f"TensorFlowCluster {spec.name!r}: its name", wrong, "Choose a shorter one.")
    constraints = {job.name: _constraints(spec, job) for job in spec.jobs}
    demands = [
        Demand(hostname, job.cpus, job.memory, job.gpus, job.name, constraints[job.name])
        for job, _, hostname in hostnames
    ]
    places, warnings = _places(spec, demands, machines, standing or {})
    tasks = tuple(_task(job, index, hostname, places[hostname]) for job, index, hostname in hostnames)
    return Plan(spec.name, spec.backend, tasks, _run(spec, tasks, given), tuple(machines), warnings)


def _places(
    spec: ClusterSpec, demands: Sequence[Demand], machines: Sequence[Machine], standing: Mapping[str, str]
) -> tuple[Mapping[str, Place], tuple[str, ...]]:
    """Places on the machines that take tasks, and warnings. A task whose machine is away stays there when no other may
    take it: it comes back with its machine."""
    ready = [machine for machine in machines if machine.ready]
    try:
        found = place(spec.name, demands, ready, standing)
        return found, tuple(spares(demands, ready, found))
    except PlacementError:
        away = {machine.name for machine in machines if not machine.ready}
        stay = {
            demand.hostname: standing[demand.hostname] for demand in demands if standing.get(demand.hostname) in away
        }
        if not stay:
            raise
        others = [demand for demand in demands if demand.hostname not in stay]
        found = place(spec.name, others, ready, standing) if others else {}
        warnings = [
            f"{name} waits for {machine}: no machine that answers may take it" for name, machine in stay.items()
        ]
        gpus = {machine.name: machine.gpus for machine in machines}
        wanted = {demand.hostname: demand.gpus for demand in demands}
        waiting = {name: Place(machine, gpus[machine][: wanted[name]]) for name, machine in stay.items()}
        return {**found, **waiting}, tuple(warnings)


def _constraints(spec: ClusterSpec, job: JobSpec) -> tuple[Constraint, ...]:
    """A job's constraints; this machine alone satisfies any."""
    where = f"{spec.name}: jobs: {job.name}: placement"
    found = tuple(parse(where, text) for text in job.container.placement)
    return () if spec.backend == "local" else found


def consequences(plan: Plan, before: Mapping[str, Any] | None) -> list[str]:
    """What this plan does to the job that stands (`agent.states.Job.to_dict`, or None), in sentences; none where nothing."""
    if before is None:
        return []
    old, new = before["run"]["id"], plan.run["id"]
    if old != new:
        return [f"run {old} gives way to run {new}: all tasks start anew, in a train_dir of their own"]
    crew = {name: task["job"] != TENSORBOARD for name, task in before["tasks"].items()}
    have, want = list(crew), [task.hostname for task in plan.tasks]
    crew.update({task.hostname: task.job != TENSORBOARD for task in plan.tasks})
    if have == want:
        return []
    gone, new = [name for name in have if name not in want], [name for name in want if name not in have]
    told = [*(f"{name} goes" for name in gone), *(f"{name} comes" for name in new)]
    if not any(crew[name] for name in (*gone, *new)):
        return [f"{', '.join(told)}: the others go on"]
    end = "the run is finished, so nothing starts" if before["verdict"] else "all tasks start again with the new flags"
    return [f"{', '.join(told)}: {end}"]


def _task(job: JobSpec, index: int, hostname: str, spot: Place) -> TaskPlan:
    port = job.port + index if job.port else 0
    return TaskPlan(hostname, job.name, index, spot.machine, spot.gpus, job.memory, job.cpus, port)


def _run(spec: ClusterSpec, tasks: Sequence[TaskPlan], given: Given) -> dict[str, Any]:
    content = {
        "command": list(spec.command),
        "code": given.code,
        "env": dict(spec.env),
        "jobs_env": {job.name: dict(job.env) for job in spec.crew if job.env},
        "requirements": list(spec.requirements),
        "data_dir": given.data_dir,
        "context": spec.context,
        "run_id": spec.run_id,
        "resume_from": spec.resume_from,
        **({"image": given.image} if given.image else {}),
        **({"serve": True} if any(job.command for job in spec.crew) else {}),
        **({"master": True} if spec.master else {}),
    }
    text = json.dumps(content, sort_keys=True)
    return {
        **{
            key: content[key]
            for key in ("command", "code", "env", "requirements", "data_dir", "context", "resume_from")
        },
        "id": hashlib.sha256(text.encode()).hexdigest()[:12],
        "train_dir": given.train_dir,
        "serve": spec.serve,
        **({"master": True} if spec.master else {}),
        "success": spec.success,
        "grace": spec.grace,
        "start_timeout": spec.start_timeout,
        "path": [],
        "tasks": [{"hostname": task.hostname, "job": task.job, "index": task.index} for task in tasks],
        "jobs": {job.name: _job(job) for job in spec.jobs},
    }


def _job(job: JobSpec) -> dict[str, Any]:
    own = {"command": list(job.command)} if job.command else {}
    return {"env": dict(job.env), "restart": _restart(job), **own}


def _restart(job: JobSpec) -> dict[str, Any]:
    policy = job.restart
    return {"maximum": policy.maximum, "backoff": policy.backoff, "on": list(policy.on)}
