"""Spec and inventory become a plan: the tasks, their machines, and the run. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from ..agent.control import elastic
from ..agent.control.end_policy import is_worker
from ..agent.model import task_command
from ..agent.model.deciding_tasks import deciding_tasks
from ..agent.model.json_data import JsonData
from ..agent.model.run_spec import RunSpec
from ..agent.model.run_state import EVALUATOR, FAILED, TENSORBOARD, RunState, continues
from ..agent.model.settings import Limits
from ..errors import PlacementError, SpecError
from ..outputs import CostSummary
from ..spec.backends import BACKENDS
from ..spec.cluster import ClusterSpec
from ..spec.jobs import JobSpec
from ..spec.unknown_values import Unknown, is_known
from ..units import counted, text_of_number, text_of_seconds
from .constraints import Constraint, parse
from .inventory import Inventory
from .run_id import is_same_content, run_id
from .scheduler import Demand, Machine, Place, place

LONGEST_HOSTNAME = 63
"""RFC 1123: a label of a hostname has at most 63 characters."""

CHECKPOINT_UPLOAD_INTERVAL = 300.0
"""Seconds; the default where a machine can be lost while the record stays."""

_NAMED = 3
"""So many tasks are named one by one in a sentence."""

_SECRET_ID = Unknown("the run's id, which depends on secret values of `env`")

CREATE, UPDATE, DELETE = "+", "~", "-"


@dataclass(frozen=True)
class Change:
    """One change that an update makes, as a line of the preview: `~ worker-0  memory 1 GiB -> 2 GiB  (restarts)`."""

    operation: str
    names: tuple[str, ...]
    """The tasks, or the machines, that change in the same way."""
    details: tuple[str, ...] = ()
    """What changes, and from what to what."""
    effect: str = ""
    """What the change does to a running training; empty for nothing."""

    def __str__(self) -> str:
        parts = [", ".join(self.names), ", ".join(self.details), f"({self.effect})" if self.effect else ""]
        return f"{self.operation} {'  '.join(filter(None, parts))}"


def detail(name: str, before: object, after: object) -> str:
    """`memory 1 GiB -> 2 GiB`; what is empty is shown as `none`."""
    return f"{name} {before or 'none'} -> {after or 'none'}"


def updates(name: str, settings: Mapping[str, tuple[str, str]], effect: str) -> Iterator[Change]:
    """The change of a task, if one of its settings differs; they have the values before and after."""
    if details := tuple(detail(key, *pair) for key, pair in settings.items() if pair[0] != pair[1]):
        yield Change(UPDATE, (name,), details, effect)


def grouped(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The same changes, with one entry for all that differ in nothing but the name."""
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for change in changes:
        groups.setdefault((change.operation, change.details, change.effect), []).extend(change.names)
    return tuple(Change(key[0], tuple(names), key[1], key[2]) for key, names in groups.items())


@dataclass(frozen=True)
class TaskPlan(JsonData):
    """One task: its machine, and what the engine needs to run it."""

    hostname: str
    job: str
    index: int
    machine: str
    """Empty where the engine chooses it."""
    port: int
    """0 for any free port."""
    gpus: tuple[str, ...]
    """As many as the task requests. Where the engine chooses them, only their number counts."""
    limits: Limits


@dataclass(frozen=True)
class Plan:
    """The desired state of one cluster. Made once by `make_plan`."""

    cluster: str
    backend: str
    tasks: tuple[TaskPlan, ...]
    run: RunSpec
    """What the controller runs."""
    machines: tuple[Machine, ...]
    warnings: tuple[str, ...] = ()
    unneeded: frozenset[str] = frozenset()
    """Machines that are gone and are not created again, because the run is finished."""
    changes: tuple[Change, ...] = ()
    """What an update would change in the current run."""
    cost: CostSummary = field(default_factory=CostSummary)
    """As the inventory has it."""

    @property
    def needed_tasks(self) -> tuple[TaskPlan, ...]:
        """The tasks that are to exist: all but those of unneeded machines."""
        return tuple(task for task in self.tasks if task.machine not in self.unneeded)

    @property
    def needed_machines(self) -> tuple[Machine, ...]:
        """The machines that are to exist."""
        return tuple(machine for machine in self.machines if machine.name not in self.unneeded)

    @property
    def absent_workers(self) -> tuple[task_command.TaskAddress, ...]:
        """In an elastic run the workers that do not exist in this plan and may be added."""
        present = {task.hostname for task in self.tasks}
        return tuple(
            task_command.TaskAddress(name, "worker", index, f"{name}:port")
            for name, index in elastic.optional_workers(self.run).items()
            if name not in present
        )

    @property
    def placement(self) -> list[str]:
        """A line for each machine with its tasks; none where there is only one machine."""
        tasks: dict[str, list[str]] = {machine.name: [] for machine in self.machines}
        for task in self.tasks:
            tasks.setdefault(task.machine, []).append(task.hostname)
        return (
            [f"  {name}: {', '.join(hostnames) or '-'}" for name, hostnames in tasks.items()] if len(tasks) > 1 else []
        )

    @property
    def command(self) -> str:
        """The command as the user wrote it."""
        return task_command.shown_command(self.run.command)

    def own_command(self, job: str) -> str:
        """The command of one job, where it has its own; otherwise empty."""
        return task_command.shown_command(self.run.jobs[job].command)

    @property
    def summary(self) -> str:
        """One line about it."""
        run = _SECRET_ID if self.run.secret_env else self.run.id
        backend = f"{self.backend} (beta)" if BACKENDS[self.backend].is_beta else self.backend
        return f"{self.cluster} on {backend}: run {run}, {counted(len(self.tasks), 'task')}"

    @property
    def success_rule(self) -> str:
        """When the run succeeds, in one sentence."""
        if self.run.serve:
            return "The servers of TensorFlow run until they are stopped."
        run = RunState(self.run, 0.0)
        tasks = {task.hostname: None for task in deciding_tasks(run)}
        others = [task.hostname for task in run.training_tasks if is_worker(run, task) and task.hostname not in tasks]
        verb = "succeeds" if len(tasks) == 1 else "succeed"
        end = f"; {_names(others)} {self._time_to_end(len(others))}" if others else ""
        end += self._time_to_evaluate()
        conditions = [f"{it.metric} {it.comparison} {text_of_number(it.threshold)}" for it in self.run.until]
        earlier = f" It succeeds before that if {' and '.join(conditions)}." if conditions else ""
        most = self.run.max_workers
        change = f" Up to {most} workers may be added, removed or lost without a restart of the others." if most else ""
        return f"The run succeeds when {_names([*tasks])} {verb}{end}.{earlier}{change}"

    def _time_to_end(self, count: int) -> str:
        """What the other workers do after the success: `then has 1m to end by itself`."""
        if not self.run.worker_timeout:
            return "is then stopped" if count == 1 else "are then stopped"
        have, itself = ("has", "itself") if count == 1 else ("have", "themselves")
        return f"then {have} {text_of_seconds(self.run.worker_timeout)} to end by {itself}"

    def _time_to_evaluate(self) -> str:
        if not self.run.evaluator_timeout:
            return ""
        return f"; the evaluator then has {text_of_seconds(self.run.evaluator_timeout)} to evaluate the last checkpoint"


def make_plan(spec: ClusterSpec, inventory: Inventory, code: str = "") -> Plan:
    """The plan for a spec; `code` is the name of the archive of the code, empty for none.

    Raises:
        PlacementError: the tasks do not fit.
        SpecError: a hostname is too long, or a constraint is not valid.
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
    places, warnings = _places(spec, demands, inventory)
    tasks = tuple(_task(job, index, hostname, places[hostname]) for job, index, hostname in hostnames)
    run = _run(spec, tasks, inventory, code)
    return Plan(
        spec.name,
        spec.backend,
        tasks,
        run,
        inventory.machines,
        warnings,
        _unneeded(run, inventory),
        tuple(_changes(run, tasks, inventory)),
        inventory.cost,
    )


def _names(hostnames: Sequence[str]) -> str:
    """Hostnames in words; of many the first and the last one."""
    if len(hostnames) > _NAMED:
        return f"{hostnames[0]} to {hostnames[-1]}"
    return " and ".join(filter(None, [", ".join(hostnames[:-1]), hostnames[-1]]))


def _unneeded(run: RunSpec, inventory: Inventory) -> frozenset[str]:
    """The machines that are lost, where this run is finished."""
    current = inventory.run
    if current is None or current.result is None or continues(current) or not is_same_content(current.spec, run):
        return frozenset()
    return inventory.lost


def starts_new_run(plan: Plan, inventory: Inventory) -> bool:
    """Whether an update would replace the current run by one that the record does not have."""
    current, run = inventory.run, plan.run
    is_other = current is not None and is_known(run.id) and not is_same_content(current.spec, run)
    return is_other and run.id not in inventory.results


def _places(
    spec: ClusterSpec, demands: Sequence[Demand], inventory: Inventory
) -> tuple[Mapping[str, Place], tuple[str, ...]]:
    """Places on the machines that accept tasks, and warnings. A task whose machine does not respond stays there. No machines, where the
    engine places tasks."""
    if inventory.places_tasks:
        return {demand.hostname: Place("", tuple(map(str, range(demand.gpus)))) for demand in demands}, ()
    machines, current = inventory.machines, inventory.task_machines

    def on(names: Set[str]) -> dict[str, str]:
        return {demand.hostname: name for demand in demands if (name := current.get(demand.hostname, "")) in names}

    silent = on({machine.name for machine in machines if not machine.responds})
    warnings = [
        f"{name} waits for {machine}, which does not respond: its program may still run there"
        for name, machine in silent.items()
    ]
    try:
        return _places_of_others(spec, demands, inventory, silent), tuple(warnings)
    except PlacementError:
        unready = on({machine.name for machine in machines if not machine.ready})
        if unready == silent:
            raise
        places = _places_of_others(spec, demands, inventory, unready)
        warnings += [
            f"{name} waits for {machine}: no machine that responds may run it"
            for name, machine in unready.items()
            if name not in silent
        ]
        return places, tuple(warnings)


def _places_of_others(
    spec: ClusterSpec, demands: Sequence[Demand], inventory: Inventory, staying: Mapping[str, str]
) -> Mapping[str, Place]:
    """The places of all tasks; the tasks `staying` (hostname to machine) are not placed again."""
    gpus, all_gpus = inventory.task_gpus, {machine.name: machine.gpus for machine in inventory.machines}
    counts = {demand.hostname: demand.gpus for demand in demands}
    stay = {
        name: Place(machine, (gpus.get(name) or all_gpus[machine])[: counts[name]]) for name, machine in staying.items()
    }
    others = [demand for demand in demands if demand.hostname not in staying]
    ready = [machine for machine in inventory.machines if machine.ready]
    if not others:
        return stay
    return {**place(spec.name, others, ready, inventory.task_machines, gpus), **stay}


def _constraints(spec: ClusterSpec, job: JobSpec) -> tuple[Constraint, ...]:
    where = f"{spec.name}: jobs.{job.name}.container.placement"
    return tuple(parse(where, text) for text in job.container.placement)


def _changes(run: RunSpec, tasks: Sequence[TaskPlan], inventory: Inventory) -> list[Change]:
    """What this plan changes in the current run."""
    current = inventory.run
    if current is None:
        return []
    is_decided = is_known(run.id)
    if is_decided and not is_same_content(current.spec, run):
        effect = _effect_of_other_run(run, inventory.results.get(run.id))
        return [Change(UPDATE, ("run",), (f"{current.spec.id} -> {run.id}",), effect)]
    before = {name: task.job != TENSORBOARD for name, task in current.tasks.items()}
    after = {task.hostname: task.job != TENSORBOARD for task in tasks}
    removed, added = [name for name in before if name not in after], [name for name in after if name not in before]
    details, resized = _elastic_changes(current.spec, run)
    if not any({**before, **after}[name] for name in (*removed, *added)):
        effect = "the other tasks continue"
    elif elastic.tasks_continue(current.spec, run) and not current.result:
        effect = "no restart: the other tasks continue"
    elif not is_decided:
        effect = "all tasks restart, if the run is not finished"
    elif current.result:
        effect = f"the run {'has failed' if current.result.state == FAILED else 'is finished'}: nothing starts"
    else:
        effect = "all tasks restart with the new host lists"
    operations = ((DELETE, removed), (CREATE, added))
    undecided = Change(UPDATE, ("run",), (), "whether it is a new run is known after the update")
    first = [] if is_decided else [undecided]
    if resized and not current.result:
        first.append(Change(UPDATE, ("run",), resized, "all tasks restart with the new host lists"))
    return first + [Change(operation, tuple(names), details, effect) for operation, names in operations if names]


def _elastic_changes(before: RunSpec, after: RunSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """In an elastic run: the change of the number of workers, and that of their maximum."""
    maximum = (detail("elastic.max", before.max_workers, after.max_workers),)
    counts = [sum(task.job == "worker" for task in spec.tasks) for spec in (before, after)]
    workers = (detail("workers", *counts),) if after.max_workers and counts[0] != counts[1] else ()
    return workers, maximum if before.max_workers != after.max_workers else ()


def _effect_of_other_run(run: RunSpec, result: str | None) -> str:
    """What follows if the current run is replaced by one with this result: None for a new run, empty for one without a result."""
    condition = "with the same secrets, " if run.secret_env else ""
    if result is None:
        return "all tasks start again, in a train_dir of the new run"
    if not result:
        return f"{condition}this run was replaced before it ended: it continues, in its own train_dir"
    return f"{condition}this run has {result} before: nothing starts, and its result is reported. Another `run_id` trains again"


def _task(job: JobSpec, index: int, hostname: str, task_place: Place) -> TaskPlan:
    """A task with the limits of its job."""
    port = job.port + index if job.port else 0
    return TaskPlan(hostname, job.name, index, task_place.machine, port, task_place.gpus, job.limits)


def _run(spec: ClusterSpec, tasks: Sequence[TaskPlan], inventory: Inventory, code: str) -> RunSpec:
    """What the run has under the name of an argument is that of the specification, unless it is named here."""
    has_evaluator = spec.job(EVALUATOR) is not None
    own = {
        "id": run_id(spec, inventory, code),
        "tasks": [task.hostname for task in tasks],
        "jobs": {job.name: _job(job) for job in spec.jobs},
        "command": list(spec.command or inventory.entry_point),
        "code": code,
        "secret_env": sorted(spec.secret_env),
        "data_dir": inventory.data_dir,
        "train_dir": inventory.train_dir,
        "serve": spec.standalone_servers,
        "master": spec.tf_config_master,
        "evaluator_timeout": spec.evaluator_timeout if has_evaluator else 0.0,
        "grace": spec.stop_grace_period,
        "until": [
            {"metric": name, "pattern": spec.metrics[name], **vars(limit)} for name, limit in sorted(spec.until.items())
        ],
        "budget": spec.ec2.budget,
        **inventory.run_cost,
        "max_workers": spec.max_workers,
        "worker_port": sum(job.port for job in spec.jobs if job.name == "worker" and spec.max_workers),
        "checkpoint_upload_interval": _checkpoint_upload_interval(spec, inventory),
    }
    return RunSpec.from_dict({**spec.to_dict(), **own})


def _checkpoint_upload_interval(spec: ClusterSpec, inventory: Inventory) -> float:
    if spec.checkpoint_upload_interval is not None:
        return spec.checkpoint_upload_interval
    least = BACKENDS[spec.backend].loses_machines_from
    can_lose_machine = least > 0 and (inventory.places_tasks or least <= len(inventory.machines))
    return CHECKPOINT_UPLOAD_INTERVAL if can_lose_machine else 0.0


def _job(job: JobSpec) -> dict[str, Any]:
    """As JSON of a `RunJob`."""
    return {**job.to_dict(), "service": job.is_service, "unlisted": job.is_unlisted}
