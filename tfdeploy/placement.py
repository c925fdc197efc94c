"""Which task stands on which machine: resources, constraints, and an even spread; what stands well stays. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from .board import Board, Demand, Machine, Rule, enough
from .constraints import Constraint
from .errors import PlacementError
from .quantities import text_of_size

__all__ = ["Demand", "Machine", "Place", "place", "spares"]

_WORK = 300_000
_WORK_FOR_SPARES = 20_000
"""How many machines a search may look at in all before it gives up."""

_NOWHERE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Place:
    """Where a task stands, and which GPUs are its own."""

    machine: str
    gpus: tuple[str, ...] = ()


def place(
    cluster: str, demands: Sequence[Demand], machines: Sequence[Machine], standing: Mapping[str, str] = _NOWHERE
) -> Mapping[str, Place]:
    """A place for every task: where it stands now, or on the machine with the fewest tasks that may hold it.

    Tasks that stand well (`standing`: hostname to machine) move only where the others find no place otherwise.

    Raises:
        PlacementError: a task finds no place; the message has a table of what the machines have.
    """
    if demands and not machines:
        where = f"{cluster}: {demands[0].hostname}"
        raise PlacementError(where, "there is no machine to place it on", "Add a machine, or wait until one is ready.")
    board, stuck = _find(demands, machines, standing, _WORK)
    if stuck is not None:
        raise _refusal(cluster, stuck, board)
    left = [iter(machine.gpus) for machine in machines]
    places: dict[str, Place] = {}
    for demand in demands:
        index = board.at[demand.hostname]
        gpus = tuple(next(left[index]) for _ in range(demand.gpus))
        places[demand.hostname] = Place(machines[index].name, gpus)
    return places


def spares(demands: Sequence[Demand], machines: Sequence[Machine], places: Mapping[str, Place]) -> list[str]:
    """A warning for each job with constraints that could not stand again if a machine that it uses died."""
    warnings = []
    for job in dict.fromkeys(demand.job for demand in demands if demand.constraints):
        own = [demand for demand in demands if demand.job == job]
        standing = {demand.hostname: places[demand.hostname].machine for demand in own}
        rest = _without(machines, [demand for demand in demands if demand.job != job], places)
        for name in dict.fromkeys(standing.values()):
            left = [machine for machine in rest if machine.name != name]
            if not left or _find(own, left, standing, _WORK_FOR_SPARES)[1] is not None:
                asked = ", ".join(map(str, own[0].constraints))
                warnings.append(
                    f"{job or 'the tasks'}: no machine is spare under {asked}: "
                    f"if {name} died, not all tasks of this job could be placed again"
                )
                break
    return warnings


def _without(machines: Sequence[Machine], demands: Sequence[Demand], places: Mapping[str, Place]) -> Sequence[Machine]:
    """The machines with these tasks' share taken from them."""
    taken: dict[str, list[Demand]] = {}
    for demand in demands:
        taken.setdefault(places[demand.hostname].machine, []).append(demand)
    return [
        replace(
            machine,
            taken_cpus=machine.taken_cpus + sum(demand.cpus for demand in taken.get(machine.name, ())),
            taken_memory=machine.taken_memory + sum(demand.memory for demand in taken.get(machine.name, ())),
            taken_gpus=machine.taken_gpus + sum(demand.gpus for demand in taken.get(machine.name, ())),
        )
        for machine in machines
    ]


def _find(
    demands: Sequence[Demand], machines: Sequence[Machine], standing: Mapping[str, str], work: int
) -> tuple[Board, Demand | None]:
    """A board with all tasks on it and None, or one that is as full as it gets and a task that finds no place."""
    index_of = {machine.name: index for index, machine in reversed(list(enumerate(machines)))}
    homes = {hostname: index_of[name] for hostname, name in standing.items() if name in index_of}
    board = Board(demands, machines)
    stuck = _greedy(board, board.keep(demands, homes))
    if stuck is None:
        return board, None
    empty = Board(demands, machines)
    unfit = next((demand for demand in demands if not empty.able(demand)), None)
    if unfit is not None:
        return board, unfit
    if not enough(demands, empty.spots) or not all(rule.suffices for rule in empty.rules):
        return board, stuck
    for kept in [homes, {}] if homes else [{}]:
        trial = Board(demands, machines)
        if _search(trial, _hardest_first(trial.keep(demands, kept), empty), homes, work):
            return trial, None
    return board, stuck


def _greedy(board: Board, demands: Sequence[Demand]) -> Demand | None:
    """Put each task where it stands best now; return the first that cannot stand anywhere."""
    for demand in demands:
        candidates = board.candidates(demand)
        if not candidates:
            return demand
        board.put(demand, candidates[0])
    return None


def _hardest_first(demands: Sequence[Demand], empty: Board) -> Sequence[Demand]:
    """Those that few machines can hold first, then the larger ones."""
    cpus = sum(spot.cpus for spot in empty.spots) or 1.0
    memory = sum(spot.memory for spot in empty.spots) or 1
    able: dict[object, int] = {}
    keys = [(demand.job, demand.constraints, demand.cpus, demand.memory, demand.gpus) for demand in demands]
    for demand, key in zip(demands, keys, strict=True):
        able[key] = able[key] if key in able else len(empty.able(demand))
    order = sorted(
        zip(demands, keys, strict=True),
        key=lambda pair: (able[pair[1]], -pair[0].gpus, -(pair[0].cpus / cpus + pair[0].memory / memory)),
    )
    return [demand for demand, _ in order]


def _search(board: Board, order: Sequence[Demand], homes: Mapping[str, int], work: int) -> bool:
    """Whether all tasks could be put on the board, going back where one finds no place, within so much work."""

    def ways(demand: Demand) -> Iterator[int]:
        return iter(board.candidates(demand, homes.get(demand.hostname, -1)))

    failed: set[object] = set()
    states: list[object] = [None]
    open_ways = [ways(order[0])]
    while True:
        done = len(open_ways) - 1
        index = next(open_ways[-1], None)
        if index is None:
            failed.add((done, states.pop()))
            open_ways.pop()
            if done == 0:
                return False
            board.take_back(order[done - 1])
            continue
        board.put(order[done], index)
        if done + 1 == len(order):
            return True
        work -= len(board.spots)
        if work < 0:
            return False
        states.append(board.state())
        known = (done + 1, states[-1]) in failed
        open_ways.append(iter(()) if known else ways(order[done + 1]))


def _refusal(cluster: str, demand: Demand, board: Board) -> PlacementError:
    """Why a task finds no place on a board: resources, or constraints."""
    where = f"{cluster}: {demand.hostname}"
    rule = board.rule(demand)
    holding = board.able(demand)
    if rule.allowed and not holding:
        return _lack(where, demand, board)
    told = [one for one in demand.constraints if not any(one.admits(spot.machine) for spot in board.spots)]
    if not rule.allowed:
        guilty = told[:1] or list(demand.constraints)
        wrong = f"no machine satisfies {' and '.join(map(str, guilty))}"
    else:
        full = [tally for tally, values in rule.tallies if not any(tally.allows(values[index]) for index in holding)]
        guilty = [tally.constraint for tally in full[:1] or [tally for tally, _ in rule.tallies]]
        wrong = f"{' and '.join(map(str, guilty))} {'leaves' if len(guilty) == 1 else 'leave'} no machine for it"
    rows = (f"\n  {spot.machine.name}: {_values(spot.machine, guilty)}" for spot in board.spots)
    counts = [f", {tasks} of its job's tasks" if rule.allowed else "" for tasks in _own(board, rule)]
    table = "".join(f"{row}{count}" for row, count in zip(rows, counts, strict=True))
    return PlacementError(
        where, wrong, f"Change the constraint, ask for fewer tasks, or add a machine. There is:{table}"
    )


def _own(board: Board, rule: Rule) -> list[int]:
    """How many tasks under a rule stand on each machine."""
    here = Counter(index for hostname, index in board.at.items() if hostname in rule.hostnames)
    return [here[index] for index in range(len(board.spots))]


def _values(machine: Machine, constraints: Sequence[Constraint]) -> str:
    """What a machine has in the fields of constraints."""
    values = {one.field: one.value(machine) for one in constraints}
    return ", ".join(f"no {name}" if value is None else f"{name} {value}" for name, value in values.items())


def _lack(where: str, demand: Demand, board: Board) -> PlacementError:
    asked = [f"{demand.cpus:g} cpus"] * bool(demand.cpus)
    asked += [f"{text_of_size(demand.memory)} of memory"] * bool(demand.memory)
    asked += [f"{demand.gpus} gpus"] * bool(demand.gpus)
    rows = [
        f"\n  {spot.machine.name}: free {spot.cpus:g} of {spot.machine.cpus:g} cpus, "
        f"{text_of_size(spot.memory)} of {text_of_size(spot.machine.memory)}, "
        f"{spot.gpus} of {len(spot.machine.gpus)} gpus"
        for spot in board.spots
    ]
    limited = len(board.rule(demand).allowed) < len(board.spots)
    verb = "allows" if len(demand.constraints) == 1 else "allow"
    told = " and ".join(map(str, demand.constraints))
    that = f"machine that {told} {verb}" if limited and told else "machine of its job's" if limited else "machine"
    wrong = f"asks for {', '.join(asked) or 'a place'}, and no {that} has that free"
    return PlacementError(where, wrong, f"Ask for less, or for fewer tasks. There is:{''.join(rows)}")
