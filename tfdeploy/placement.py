"""Which task stands on which machine: resources, and an even spread. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import PlacementError
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

    @property
    def size(self) -> str:
        """What there is, as the table shows it."""
        gpus = f", {len(self.gpus)} gpus" if self.gpus else ""
        return f"{self.cpus:g} cpus, {text_of_size(self.memory)}{gpus}"


@dataclass(frozen=True)
class Demand:
    """What one task needs; 0 is no demand."""

    hostname: str
    cpus: float = 0.0
    memory: int = 0
    gpus: int = 0


@dataclass(frozen=True)
class Place:
    """Where a task stands, and which GPUs are its own."""

    machine: str
    gpus: tuple[str, ...] = ()


@dataclass
class _Free:
    machine: Machine
    cpus: float
    memory: float
    gpus: list[str]
    tasks: int = 0

    def holds(self, demand: Demand) -> bool:
        return demand.cpus <= self.cpus + _ROUNDING and demand.memory <= self.memory and demand.gpus <= len(self.gpus)

    def take(self, demand: Demand) -> Place:
        self.cpus = max(0.0, self.cpus - demand.cpus)
        self.memory -= demand.memory
        given, self.gpus = self.gpus[: demand.gpus], self.gpus[demand.gpus :]
        self.tasks += 1
        return Place(self.machine.name, tuple(given))


def place(cluster: str, demands: Sequence[Demand], machines: Sequence[Machine]) -> Mapping[str, Place]:
    """A place for every task, on the machine with the fewest tasks that can hold it.

    Raises:
        PlacementError: a task fits nowhere; the message has a table of what is free.
    """
    free = [_Free(machine, machine.cpus, machine.memory, list(machine.gpus)) for machine in machines]
    places: dict[str, Place] = {}
    for demand in demands:
        fitting = [spot for spot in free if spot.holds(demand)]
        if not fitting:
            raise _refusal(cluster, demand, free)
        places[demand.hostname] = min(fitting, key=lambda spot: spot.tasks).take(demand)
    return places


def _refusal(cluster: str, demand: Demand, free: Sequence[_Free]) -> PlacementError:
    asked = [f"{demand.cpus:g} cpus"] * bool(demand.cpus)
    asked += [f"{text_of_size(demand.memory)} of memory"] * bool(demand.memory)
    asked += [f"{demand.gpus} gpus"] * bool(demand.gpus)
    rows = [
        f"\n  {spot.machine.name}: free {spot.cpus:g} of {spot.machine.cpus:g} cpus, "
        f"{text_of_size(spot.memory)} of {text_of_size(spot.machine.memory)}, "
        f"{len(spot.gpus)} of {len(spot.machine.gpus)} gpus"
        for spot in free
    ]
    wrong = f"asks for {', '.join(asked) or 'a place'}, and no machine has that free"
    return PlacementError(
        f"{cluster}: {demand.hostname}", wrong, f"Ask for less, or for fewer tasks. There is:{''.join(rows)}"
    )
