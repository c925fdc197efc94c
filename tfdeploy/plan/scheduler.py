"""Assigns each task to a machine: by resources, by constraints, and evenly. Tasks that fit where they are stay there. Pure.

Placement is greedy, as in Marathon: each task in turn gets the best machine that may run it, and keeps it. So a plan can be
explained, and is fast. It may refuse a plan that a search over all assignments would find.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ..errors import PlacementError
from ..units import text_of_size
from .constraints import Constraint, Tally

_ROUNDING = 1e-9
"""The error of subtracting fractions of a processor: five times 0.6 fit on three."""

_TOTAL_ROUNDING = 1e-6

_NOT_PLACED: Mapping[str, str] = MappingProxyType({})
_NO_GPUS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Machine:
    """A machine that tasks can run on, and its resources."""

    name: str
    role: str
    provider: str
    region: str
    cpus: float
    memory: int
    gpus: tuple[str, ...] = ()
    public_ip: str = ""
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taken_cpus: float = 0.0
    taken_memory: int = 0
    taken_gpus: int = 0
    """The resources that are reserved for others."""
    limit: str = ""
    """Why it offers fewer GPUs than it has, for people."""
    kind: str = ""
    """The name of its type; empty where it has none."""
    jobs: tuple[str, ...] = ()
    """The jobs that may run on it; empty for all."""
    ready: bool = True
    """Whether it accepts tasks now; one that does not may still have some."""
    responds: bool = True
    """Otherwise what runs there may still run: a task on it stays."""
    exists: bool = True
    """Whether it exists; otherwise the update creates it."""

    @property
    def size(self) -> str:
        """Its type or its resources, as the table shows it."""
        if self.kind:
            return self.kind
        gpus = f", {len(self.gpus)} gpus" if self.gpus else ""
        return f"{self.cpus:g} cpus, {text_of_size(self.memory)}{gpus}"


@dataclass(frozen=True)
class Demand:
    """The resources that one task requests; 0 for none. All tasks of a job have the same constraints."""

    hostname: str
    cpus: float = 0.0
    memory: int = 0
    gpus: int = 0
    job: str = ""
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True)
class Place:
    """The machine of a task, and the GPUs that only this task uses."""

    machine: str
    gpus: tuple[str, ...] = ()


def place(
    cluster: str,
    demands: Sequence[Demand],
    machines: Sequence[Machine],
    current: Mapping[str, str] = _NOT_PLACED,
    current_gpus: Mapping[str, tuple[str, ...]] = _NO_GPUS,
) -> Mapping[str, Place]:
    """A place for every task: on its current machine, or on the machine with the fewest tasks that may run it.

    A task leaves its machine in `current` (hostname to machine) only if it no longer fits there, or if the others do not fit
    otherwise. A task that stays keeps its GPUs in `current_gpus`: another one would restart it.

    Raises:
        PlacementError: a task does not fit; the message has a table of the machines.
    """
    if demands and not machines:
        where = f"{cluster}: {demands[0].hostname}"
        raise PlacementError(where, "there is no machine to place it on", "Add a machine, or wait until one is ready.")
    assignment, unplaced = _assign(demands, machines, current)
    if unplaced is not None:
        raise _refusal(cluster, unplaced, assignment)
    machine_of = {demand.hostname: machines[assignment.machine_of[demand.hostname]] for demand in demands}
    staying = {
        name: current_gpus.get(name, ()) for name, machine in machine_of.items() if current.get(name) == machine.name
    }
    gpus = _assign_gpus(demands, machine_of, staying)
    return {name: Place(machine.name, gpus[name]) for name, machine in machine_of.items()}


def _assign_gpus(
    demands: Sequence[Demand], machine_of: Mapping[str, Machine], staying: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The GPUs of each task: first those that tasks have already, then the next free ones of their machines."""
    free = {machine.name: list(machine.gpus) for machine in machine_of.values()}
    assigned: dict[str, tuple[str, ...]] = {}
    for demand in demands:
        own = free[machine_of[demand.hostname].name]
        assigned[demand.hostname] = tuple(gpu for gpu in staying.get(demand.hostname, ()) if gpu in own)[: demand.gpus]
        own[:] = [gpu for gpu in own if gpu not in assigned[demand.hostname]]
    for demand in demands:
        own = free[machine_of[demand.hostname].name]
        missing = demand.gpus - len(assigned[demand.hostname])
        assigned[demand.hostname] += tuple(own[:missing])
        del own[:missing]
    return assigned


class _FreeResources:
    """The free resources of a machine, and the number of tasks assigned to it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.cpus = max(0.0, machine.cpus - machine.taken_cpus)
        self.memory = max(0, machine.memory - machine.taken_memory)
        self.gpus = max(0, len(machine.gpus) - machine.taken_gpus)
        self.tasks = 0

    def fits(self, demand: Demand) -> bool:
        """Whether the resources that a task requests are free."""
        return demand.cpus <= self.cpus + _ROUNDING and demand.memory <= self.memory and demand.gpus <= self.gpus


class _JobRule:
    """The constraints of one job, evaluated for all machines. Machines are known by their index."""

    def __init__(self, demands: Sequence[Demand], free: Sequence[_FreeResources]) -> None:
        sizes = {(demand.cpus, demand.memory, demand.gpus): demand for demand in demands}.values()
        job, constraints = demands[0].job, demands[0].constraints
        self.hostnames = {demand.hostname for demand in demands}
        self.allowed = {
            index: None
            for index, resources in enumerate(free)
            if job in (resources.machine.jobs or (job,))
            and all(constraint.admits(resources.machine) for constraint in constraints)
        }
        """The machines that may run tasks of the job: a dictionary, because it has an order."""
        self.tallies: list[tuple[Tally, list[str]]] = []
        """For each constraint that counts tasks: its tally, and its value on each machine."""
        self.queues: dict[tuple[float, int, int], _Queue] = {}
        """The machines for the tasks of one size, where such a task was not assigned to its current machine."""
        able = [index for index in self.allowed if any(free[index].fits(demand) for demand in sizes)]
        for constraint in (constraint for constraint in constraints if constraint.counts):
            values = [constraint.value(resources.machine) or "" for resources in free]
            if constraint.operator == "CLUSTER":
                self.allowed = _sufficient_groups(self.allowed, values, demands, free)
            value_count = len({values[index] for index in able})
            tally = Tally(constraint, len(demands), value_count)
            self.tallies.append((tally, values))

    def admits(self, index: int) -> bool:
        """Whether an allowed machine may run one more task."""
        return all(tally.allows(values[index]) for tally, values in self.tallies)

    def add(self, index: int) -> None:
        """Count a task that is assigned to a machine."""
        for tally, values in self.tallies:
            tally.add(values[index])

    def group_sizes(self, index: int) -> list[int]:
        """How many tasks the groups of a machine have: its values in the fields of GROUP_BY."""
        return [tally.count(values[index]) for tally, values in self.tallies if tally.constraint.operator == "GROUP_BY"]


class _Queue:
    """The machines that may run tasks of one job and one size, the best first: their groups have the fewest tasks, then they have the
    fewest tasks.

    While tasks are assigned, a machine may only fall behind others, and one that may not run a further task may not later either. So
    an entry that has changed since it was sorted is corrected when it is the first: each task costs a few steps, or with GROUP_BY one
    for each machine of a group.
    """

    def __init__(self, demand: Demand, rule: _JobRule, free: Sequence[_FreeResources]) -> None:
        self._demand, self._rule, self._free = demand, rule, free
        self._entries = [self._entry(index) for index in rule.allowed]
        heapq.heapify(self._entries)

    def first(self) -> int | None:
        """The best machine; None where no machine may run one more task."""
        while self._entries:
            index = self._entries[0][-1]
            entry = self._entry(index)
            if not (self._free[index].fits(self._demand) and self._rule.admits(index)):
                heapq.heappop(self._entries)
            elif entry == self._entries[0]:
                return index
            else:
                heapq.heapreplace(self._entries, entry)
        return None

    def _entry(self, index: int) -> tuple[list[int], int, int]:
        return self._rule.group_sizes(index), self._free[index].tasks, index


def _sufficient_groups(
    allowed: dict[int, None], values: list[str], demands: Sequence[Demand], free: Sequence[_FreeResources]
) -> dict[int, None]:
    """The machines with a value that has resources for the whole job; all machines where no value has."""
    groups: dict[str, list[_FreeResources]] = {}
    for index in allowed:
        groups.setdefault(values[index], []).append(free[index])
    cpus = sum(demand.cpus for demand in demands)
    memory = sum(demand.memory for demand in demands)
    gpus = sum(demand.gpus for demand in demands)
    sufficient = {
        value
        for value, machines in groups.items()
        if cpus <= sum(resources.cpus for resources in machines) + _TOTAL_ROUNDING
        and memory <= sum(resources.memory for resources in machines)
        and gpus <= sum(resources.gpus for resources in machines)
    }
    return {index: None for index in allowed if values[index] in sufficient} or allowed


class _Assignment:
    """The machines with the tasks that are assigned to them so far."""

    def __init__(self, demands: Sequence[Demand], machines: Sequence[Machine]) -> None:
        self.free = [_FreeResources(machine) for machine in machines]
        self.machine_of: dict[str, int] = {}
        """Hostname to the index of its machine."""
        jobs: dict[str, list[Demand]] = {}
        for demand in demands:
            jobs.setdefault(demand.job, []).append(demand)
        rules = [_JobRule(tasks, self.free) for tasks in jobs.values()]
        self.rule_of = {hostname: rule for rule in rules for hostname in rule.hostnames}
        """Hostname to the constraints of the task's job."""

    def able(self, demand: Demand) -> list[int]:
        """The allowed machines that have the resources for a task, whatever its job's other tasks use."""
        return [index for index in self.rule_of[demand.hostname].allowed if self.free[index].fits(demand)]

    def may_run(self, demand: Demand, index: int) -> bool:
        """Whether a machine may run a task now, by its index; it may be one that does not exist."""
        rule = self.rule_of[demand.hostname]
        return index in rule.allowed and self.free[index].fits(demand) and rule.admits(index)

    def best(self, demand: Demand, current: int) -> int | None:
        """The best machine that may run a task now: its current one, or else the first of the queue."""
        if self.may_run(demand, current):
            return current
        rule, size = self.rule_of[demand.hostname], (demand.cpus, demand.memory, demand.gpus)
        if size not in rule.queues:
            rule.queues[size] = _Queue(demand, rule, self.free)
        return rule.queues[size].first()

    def assign(self, demand: Demand, index: int) -> None:
        """Assign a task to a machine."""
        resources = self.free[index]
        self.machine_of[demand.hostname] = index
        resources.cpus = max(0.0, resources.cpus - demand.cpus)
        resources.memory -= demand.memory
        resources.gpus -= demand.gpus
        resources.tasks += 1
        self.rule_of[demand.hostname].add(index)

    def assign_current(self, demands: Sequence[Demand], current: Mapping[str, int]) -> list[Demand]:
        """Assign each task to its current machine if it may stay there; return the other tasks."""
        for demand in demands:
            index = current.get(demand.hostname, -1)
            if self.may_run(demand, index):
                self.assign(demand, index)
        return [demand for demand in demands if demand.hostname not in self.machine_of]


def _assign(
    demands: Sequence[Demand], machines: Sequence[Machine], current: Mapping[str, str]
) -> tuple[_Assignment, Demand | None]:
    """An assignment of all tasks and None; or a partial one, and a task that does not fit.

    The orders that are tried: as declared; the hardest task first; and that with every task free to move.
    """
    index_of = {machine.name: index for index, machine in reversed(list(enumerate(machines)))}
    current_index = {hostname: index_of[name] for hostname, name in current.items() if name in index_of}
    first = _Assignment(demands, machines)
    unplaced = _assign_greedily(first, first.assign_current(demands, current_index), current_index)
    if unplaced is None:
        return first, None
    empty = _Assignment(demands, machines)
    able = {demand.hostname: len(empty.able(demand)) for demand in demands}
    too_large = next((demand for demand in demands if not able[demand.hostname]), None)
    if too_large is not None:
        return first, too_large
    for fixed in [current_index, {}] if current_index else [{}]:
        trial = _Assignment(demands, machines)
        order = _hardest_first(trial.assign_current(demands, fixed), empty.free, able)
        if _assign_greedily(trial, order, current_index) is None:
            return trial, None
    return first, unplaced


def _assign_greedily(assignment: _Assignment, demands: Sequence[Demand], current: Mapping[str, int]) -> Demand | None:
    """Assign each task to its best machine; return the first task that does not fit."""
    for demand in demands:
        index = assignment.best(demand, current.get(demand.hostname, -1))
        if index is None:
            return demand
        assignment.assign(demand, index)
    return None


def _hardest_first(
    demands: Sequence[Demand], free: Sequence[_FreeResources], able: Mapping[str, int]
) -> Sequence[Demand]:
    """The tasks first that few machines are `able` to run, then the larger ones."""
    cpus = sum(resources.cpus for resources in free) or 1.0
    memory = sum(resources.memory for resources in free) or 1
    return sorted(
        demands,
        key=lambda demand: (
            able[demand.hostname],
            -demand.gpus,
            -(demand.cpus / cpus + demand.memory / memory),
        ),
    )


def _refusal(cluster: str, demand: Demand, assignment: _Assignment) -> PlacementError:
    """The error for a task that does not fit: because of resources, or because of constraints."""
    where = f"{cluster}: {demand.hostname}"
    rule = assignment.rule_of[demand.hostname]
    able = assignment.able(demand)
    if rule.allowed and not able:
        return _lack_of_resources(where, demand, assignment)
    if rule.allowed:
        full = [tally for tally, values in rule.tallies if not any(tally.allows(values[index]) for index in able)]
        violated = [tally.constraint for tally in full[:1] or [tally for tally, _ in rule.tallies]]
        wrong = f"{' and '.join(map(str, violated))} {'leaves' if len(violated) == 1 else 'leave'} no machine for it"
    else:
        unsatisfied = [
            constraint
            for constraint in demand.constraints
            if not any(constraint.admits(resources.machine) for resources in assignment.free)
        ]
        violated = unsatisfied[:1] or list(demand.constraints)
        wrong = f"no machine satisfies {' and '.join(map(str, violated))}"
    rows = (f"\n  {resources.machine.name}: {_values(resources.machine, violated)}" for resources in assignment.free)
    tasks = Counter(index for hostname, index in assignment.machine_of.items() if hostname in rule.hostnames)
    counts = (f", {tasks[index]} of its job's tasks" if rule.allowed else "" for index in range(len(assignment.free)))
    table = "".join(f"{row}{count}" for row, count in zip(rows, counts, strict=True))
    remedy = f"Change the constraint, ask for fewer tasks, or add a machine. There is:{table}"
    return PlacementError(where, wrong, remedy)


def _values(machine: Machine, constraints: Sequence[Constraint]) -> str:
    """The values of a machine in the fields of constraints, for people."""
    values = {constraint.field: constraint.value(machine) for constraint in constraints}
    return ", ".join(f"no {name}" if value is None else f"{name} {value}" for name, value in values.items())


def _lack_of_resources(where: str, demand: Demand, assignment: _Assignment) -> PlacementError:
    requested = [f"{demand.cpus:g} cpus"] * bool(demand.cpus)
    requested += [f"{text_of_size(demand.memory)} of memory"] * bool(demand.memory)
    requested += [f"{demand.gpus} gpus"] * bool(demand.gpus)
    rows = [
        f"\n  {resources.machine.name}: free {resources.cpus:g} of {resources.machine.cpus:g} cpus, "
        f"{text_of_size(resources.memory)} of {text_of_size(resources.machine.memory)}, "
        f"{resources.gpus} of {len(resources.machine.gpus)} gpus{f' ({limit})' if (limit := resources.machine.limit) else ''}"
        for resources in assignment.free
    ]
    is_limited = len(assignment.rule_of[demand.hostname].allowed) < len(assignment.free)
    verb = "allows" if len(demand.constraints) == 1 else "allow"
    constraints = " and ".join(map(str, demand.constraints))
    machine = "machine"
    if is_limited:
        machine += f" that {constraints} {verb}" if constraints else " of its job"
    wrong = f"asks for {', '.join(requested) or 'a place'}, and no {machine} has that free"
    return PlacementError(where, wrong, f"Ask for less, or for fewer tasks. There is:{''.join(rows)}")
