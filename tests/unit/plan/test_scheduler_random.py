"""Placement under likely demands and constraints: every result is valid, and every warning is right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plan.test_scheduler import GIB, job, machine, racks
from tfdeploy.errors import PlacementError
from tfdeploy.plan.constraints import Constraint
from tfdeploy.plan.scheduler import Demand, Machine, Place, place

DEMANDS = st.lists(st.tuples(st.floats(0, 3), st.integers(0, 4 * GIB), st.integers(0, 2)), max_size=8)


@given(DEMANDS, st.integers(1, 3))
def test_no_machine_ever_gives_more_than_it_has(wants: list[tuple[float, int, int]], count: int) -> None:
    machines = [machine(f"m{index}", gpus="01") for index in range(count)]
    demands = [Demand(f"worker-{index}", *want) for index, want in enumerate(wants)]
    try:
        places = place("mnist", demands, machines)
    except PlacementError:
        return
    assert list(places) == [demand.hostname for demand in demands]
    for spot in machines:
        here: list[tuple[Demand, Place]] = [
            (demand, places[demand.hostname]) for demand in demands if places[demand.hostname].machine == spot.name
        ]
        given_out = [gpu for _, found in here for gpu in found.gpus]
        assert sum(demand.cpus for demand, _ in here) <= spot.cpus + 1e-6
        assert sum(demand.memory for demand, _ in here) <= spot.memory
        assert sorted(given_out) == sorted(set(given_out))
        assert all(len(found.gpus) == demand.gpus for demand, found in here)


TEXTS = (
    "hostname:UNIQUE",
    "rack:UNIQUE",
    "rack:CLUSTER",
    "rack:CLUSTER:a",
    "rack:GROUP_BY",
    "rack:GROUP_BY:3",
    "hostname:GROUP_BY",
    "hostname:LIKE:m[12]",
    "rack:UNLIKE:a",
    "rack:MAX_PER:2",
    "rack:IS:b",
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Demand], list[Machine], dict[str, str]]:
    """Up to five tasks of two jobs, up to four machines, and where the tasks stand now."""
    layout = draw(st.text("ab.", min_size=1, max_size=4))
    machines = [replace(spot, cpus=draw(st.integers(1, 4))) for spot in racks(layout)]
    demands = []
    for name, most in (("ps", 2), ("worker", 3)):
        texts = draw(st.lists(st.sampled_from(TEXTS), max_size=2, unique=True))
        tasks = job(name, draw(st.integers(0, most)), *texts)
        demands += [replace(task, cpus=draw(st.integers(0, 3))) for task in tasks]
    standing = {task.hostname: f"m{draw(st.integers(0, 4))}" for task in demands if draw(st.booleans())}
    return demands, machines, standing


def satisfied(one: Constraint, tasks: Sequence[Demand], on: Sequence[Machine], machines: Sequence[Machine]) -> bool:
    """Whether a constraint holds for tasks of a job on these machines; written anew, from the documentation."""
    values = [one.value(spot) for spot in on]
    counts = Counter(values)
    if one.operator in ("LIKE", "UNLIKE", "IS") or one.parameter == "a":
        return all(one.admits(spot) for spot in on)
    if None in counts:
        return False
    if one.operator == "CLUSTER":
        return len(counts) <= 1
    if one.operator == "GROUP_BY":
        able = [spot for spot in machines if all(other.admits(spot) for other in tasks[0].constraints)]
        known = {one.value(spot) for spot in able if any(task.cpus <= spot.cpus for task in tasks)}
        spread = [counts[value] for value in known] + [0] * (int(one.parameter or 0) - len(known))
        return max(spread, default=2) - min(spread, default=0) <= 1
    return max(counts.values()) <= int(one.parameter or 1)


def allowed(demands: Sequence[Demand], on: Sequence[Machine], machines: Sequence[Machine]) -> bool:
    used: Counter[str] = Counter()
    for demand, spot in zip(demands, on, strict=True):
        used[spot.name] += int(demand.cpus)
    if any(used[spot.name] > spot.cpus for spot in machines):
        return False
    for name in {demand.job for demand in demands}:
        own = [(demand, spot) for demand, spot in zip(demands, on, strict=True) if demand.job == name]
        tasks, spots = [demand for demand, _ in own], [spot for _, spot in own]
        if not all(satisfied(one, tasks, spots, machines) for one in tasks[0].constraints):
            return False
    return True


@given(cases())
def test_a_result_is_valid_and_stays(case: tuple[list[Demand], list[Machine], dict[str, str]]) -> None:
    demands, machines, current = case
    by_name = {spot.name: spot for spot in machines}
    try:
        places = place("mnist", demands, machines, current)
    except PlacementError:
        return
    assert allowed(demands, [by_name[places[demand.hostname].machine] for demand in demands], machines)
    stays = {hostname: spot.machine for hostname, spot in places.items()}
    assert place("mnist", demands, machines, stays) == places
