"""Machines, and the tasks put on them so far: what is free, and what constraints still allow. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .constraints import Constraint, Tally
from .quantities import text_of_size

_ROUNDING = 1e-9
"""What may be lost when fractions of a processor are taken one from another: five times 0.6 fit on three."""


@dataclass(frozen=True)
class Machine:
    """What tasks stand on, and what of it can be given to them."""

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
    """What others have reserved there."""
    kind: str = ""
    """The type of machine, where it has a name."""
    made_of: Mapping[str, object] = field(default_factory=dict, hash=False, repr=False)
    """What a backend that makes machines must know to make this one; plain JSON."""
    jobs: tuple[str, ...] = ()
    """Whose tasks it takes; empty for all."""
    ready: bool = True
    """Whether it takes tasks now; one that does not may still have some."""

    @property
    def size(self) -> str:
        """What there is, as the table shows it."""
        if self.kind:
            return self.kind
        gpus = f", {len(self.gpus)} gpus" if self.gpus else ""
        return f"{self.cpus:g} cpus, {text_of_size(self.memory)}{gpus}"


@dataclass(frozen=True)
class Demand:
    """What one task needs; 0 is no demand. All tasks of a job have the same constraints."""

    hostname: str
    cpus: float = 0.0
    memory: int = 0
    gpus: int = 0
    job: str = ""
    constraints: tuple[Constraint, ...] = ()


class Spot:
    """What is free on a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.cpus = max(0.0, machine.cpus - machine.taken_cpus)
        self.memory = max(0, machine.memory - machine.taken_memory)
        self.gpus = max(0, len(machine.gpus) - machine.taken_gpus)
        self.tasks = 0

    def holds(self, demand: Demand) -> bool:
        """Whether what a task needs is free."""
        return demand.cpus <= self.cpus + _ROUNDING and demand.memory <= self.memory and demand.gpus <= self.gpus


class Rule:
    """What the constraints of a job say of each machine."""

    def __init__(self, constraints: Sequence[Constraint], demands: Sequence[Demand], spots: Sequence[Spot]) -> None:
        sizes = {(demand.cpus, demand.memory, demand.gpus): demand for demand in demands}.values()
        self.hostnames = {demand.hostname for demand in demands}
        self.allowed = {
            index: None
            for index, spot in enumerate(spots)
            if demands[0].job in (spot.machine.jobs or (demands[0].job,))
            and all(one.admits(spot.machine) for one in constraints)
        }
        """A set in order."""
        self.tallies: list[tuple[Tally, list[str]]] = []
        able = [index for index in self.allowed if any(spots[index].holds(demand) for demand in sizes)]
        self.suffices = True
        for one in (one for one in constraints if one.counts):
            values = [one.value(spot.machine) or "" for spot in spots]
            if one.operator == "CLUSTER":
                self.allowed = _roomy(self.allowed, values, demands, spots)
            known = len({values[index] for index in able})
            self.tallies.append((Tally(one, len(demands), known), values))
            self.suffices = self.suffices and self.tallies[-1][0].suffice(known)

    def admits(self, index: int) -> bool:
        """Whether one more task may stand on an allowed machine."""
        return all(tally.allows(values[index]) for tally, values in self.tallies)

    def add(self, index: int, tasks: int) -> None:
        """Count a task that comes, or with -1 one that goes."""
        for tally, values in self.tallies:
            tally.add(values[index], tasks)

    def groups(self, index: int) -> list[int]:
        """How many tasks the groups have that a machine is in."""
        return [tally.on(values[index]) for tally, values in self.tallies if tally.constraint.operator == "GROUP_BY"]


def _roomy(
    allowed: dict[int, None], values: list[str], demands: Sequence[Demand], spots: Sequence[Spot]
) -> dict[int, None]:
    """Those machines that may hold a whole job together with their like; all where there is no such value."""
    wide = {
        value
        for value in {values[index] for index in allowed}
        if enough(demands, [spots[index] for index in allowed if values[index] == value])
    }
    return {index: None for index in allowed if values[index] in wide} or allowed


def enough(demands: Sequence[Demand], spots: Sequence[Spot]) -> bool:
    """Whether the machines have as much as the tasks ask for, all taken together."""
    return (
        sum(demand.cpus for demand in demands) <= sum(spot.cpus for spot in spots) + 1e-6
        and sum(demand.memory for demand in demands) <= sum(spot.memory for spot in spots)
        and sum(demand.gpus for demand in demands) <= sum(spot.gpus for spot in spots)
    )


class Board:
    """The machines with the tasks put on them so far."""

    def __init__(self, demands: Sequence[Demand], machines: Sequence[Machine]) -> None:
        self.spots = [Spot(machine) for machine in machines]
        self.at: dict[str, int] = {}
        self._cpus: dict[str, float] = {}
        jobs: dict[tuple[str, tuple[Constraint, ...]], list[Demand]] = {}
        for demand in demands:
            jobs.setdefault((demand.job, demand.constraints), []).append(demand)
        self.rules = [Rule(key[1], tasks, self.spots) for key, tasks in jobs.items()]
        self._rule_of = {hostname: rule for rule in self.rules for hostname in rule.hostnames}
        self._alike: list[object] = []

    def rule(self, demand: Demand) -> Rule:
        """What the constraints of a task's job say."""
        return self._rule_of[demand.hostname]

    def able(self, demand: Demand) -> list[int]:
        """The machines that have what a task needs, and may hold it as far as it stands alone."""
        return [index for index in self.rule(demand).allowed if self.spots[index].holds(demand)]

    def candidates(self, demand: Demand, home: int = -1) -> list[int]:
        """The machines that may hold a task now, the best first."""
        rule = self.rule(demand)
        found = [index for index in self.able(demand) if rule.admits(index)]
        return sorted(found, key=lambda index: (index != home, rule.groups(index), self.spots[index].tasks))

    def put(self, demand: Demand, index: int) -> None:
        """Put a task on a machine."""
        spot = self.spots[index]
        self.at[demand.hostname], self._cpus[demand.hostname] = index, spot.cpus
        spot.cpus = max(0.0, spot.cpus - demand.cpus)
        self._count(demand, index, 1)

    def take_back(self, demand: Demand) -> None:
        """Undo the latest put."""
        index = self.at.pop(demand.hostname)
        self.spots[index].cpus = self._cpus.pop(demand.hostname)
        self._count(demand, index, -1)

    def _count(self, demand: Demand, index: int, tasks: int) -> None:
        spot = self.spots[index]
        spot.memory -= tasks * demand.memory
        spot.gpus -= tasks * demand.gpus
        spot.tasks += tasks
        self.rule(demand).add(index, tasks)

    def keep(self, demands: Sequence[Demand], homes: Mapping[str, int]) -> list[Demand]:
        """Put each task where it stands if it may stay there; return the others."""
        for demand in demands:
            home = homes.get(demand.hostname, -1)
            rule = self.rule(demand)
            if home in rule.allowed and self.spots[home].holds(demand) and rule.admits(home):
                self.put(demand, home)
        return [demand for demand in demands if demand.hostname not in self.at]

    def state(self) -> frozenset[object]:
        """What is free and counted, the same for machines that are alike."""
        tallies = [pair for rule in self.rules for pair in rule.tallies]
        self._alike = self._alike or [self._nature(index, tallies) for index in range(len(self.spots))]
        counts = zip(*([tally.on(value) for value in values] for tally, values in tallies), strict=True)
        told = list(counts) or [()] * len(self.spots)
        here = ((s.cpus, s.memory, s.gpus, *told[i], self._alike[i]) for i, s in enumerate(self.spots))
        return frozenset(Counter(here).items())

    def _nature(self, index: int, tallies: Sequence[tuple[Tally, list[str]]]) -> object:
        shared = (values[index] if values.count(values[index]) > 1 else None for _, values in tallies)
        return (*shared, *(index in rule.allowed for rule in self.rules))
