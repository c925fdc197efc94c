"""The scheduler against the scan of all machines that it replaces: the same places and refusals, in fewer steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.plan.test_scheduler import job, machine, racks
from tfdeploy.errors import PlacementError
from tfdeploy.plan import scheduler
from tfdeploy.plan.scheduler import Demand, Machine, place

TEXTS = (
    "hostname:UNIQUE",
    "hostname:GROUP_BY",
    "hostname:CLUSTER",
    "hostname:MAX_PER:2",
    "hostname:UNLIKE:m1",
    "rack:UNIQUE",
    "rack:CLUSTER",
    "rack:GROUP_BY",
    "rack:GROUP_BY:3",
    "rack:MAX_PER:3",
    "zone:GROUP_BY",
    "zone:CLUSTER",
    "zone:LIKE:x",
)
GPUS = ("", "0", "01")


def scanned_best(assignment: scheduler._Assignment, demand: Demand, current: int) -> int | None:
    """The best machine, as the first of all machines that may run the task, sorted."""
    rule = assignment.rule_of[demand.hostname]
    indexes = [index for index in assignment.able(demand) if rule.admits(index)]
    order = sorted(
        indexes,
        key=lambda index: (index != current, rule.group_sizes(index), assignment.free[index].tasks),
    )
    return order[0] if order else None


def scanned_groups(
    allowed: dict[int, None], values: list[str], demands: Sequence[Demand], free: Sequence[scheduler._FreeResources]
) -> dict[int, None]:
    """The machines whose value has resources for the whole job: a scan of all machines for each value."""
    sufficient = set()
    for value in {values[index] for index in allowed}:
        group = [free[index] for index in allowed if values[index] == value]
        cpus = sum(demand.cpus for demand in demands) <= sum(one.cpus for one in group) + scheduler._TOTAL_ROUNDING
        memory = sum(demand.memory for demand in demands) <= sum(one.memory for one in group)
        if cpus and memory and sum(demand.gpus for demand in demands) <= sum(one.gpus for one in group):
            sufficient.add(value)
    return {index: None for index in allowed if values[index] in sufficient} or allowed


def placed(demands: Sequence[Demand], machines: Sequence[Machine], current: Mapping[str, str]) -> object:
    """Places, or the refusal."""
    try:
        return list(place("mnist", demands, machines, current).items())
    except PlacementError as refusal:
        return str(refusal)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Demand], list[Machine], dict[str, str]]:
    """Tasks of two jobs, of one size or of several; machines with racks, zones and jobs; and where the tasks are now."""
    machines: list[Machine] = []
    for rack in draw(st.text("abc.", min_size=1, max_size=7)):
        zone = draw(st.sampled_from(("x", "y", "")))
        labels = {key: value for key, value in (("rack", rack.strip(".")), ("zone", zone)) if value}
        one = machine(f"m{len(machines)}", draw(st.integers(1, 4)), gpus=draw(st.sampled_from(GPUS)))
        machines.append(replace(one, labels=labels, jobs=draw(st.sampled_from(((), (), ("ps",), ("worker",))))))
    demands = []
    sizes = st.tuples(st.sampled_from((0, 0.6, 1, 2)), st.sampled_from((0, 1 << 30)), st.integers(0, 1))
    for name in ("ps", "worker"):
        texts = draw(st.lists(st.sampled_from(TEXTS), max_size=2, unique=True))
        tasks = job(name, draw(st.integers(0, 7)), *texts)
        same = draw(sizes)
        several = draw(st.booleans())
        for task in tasks:
            cpus, memory, gpus = draw(sizes) if several else same
            demands.append(replace(task, cpus=cpus, memory=memory, gpus=gpus))
    current = {task.hostname: f"m{draw(st.integers(0, 7))}" for task in demands if draw(st.booleans())}
    return demands, machines, current


def scanned(demands: Sequence[Demand], machines: Sequence[Machine], current: Mapping[str, str]) -> object:
    """The same by scans."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler._Assignment, "best", scanned_best)
        patch.setattr(scheduler, "_sufficient_groups", scanned_groups)
        return placed(demands, machines, current)


@given(cases())
@settings(max_examples=examples(200))
def test_the_result_is_that_of_a_scan(case: tuple[list[Demand], list[Machine], dict[str, str]]) -> None:
    assert placed(*case) == scanned(*case)


LARGE_CLUSTERS = [(), ("hostname:GROUP_BY",), ("hostname:CLUSTER",), ("rack:UNLIKE:e", "hostname:MAX_PER:13")]
RACKS = [("rack:GROUP_BY",), ("hostname:MAX_PER:11", "rack:GROUP_BY")]


@pytest.mark.parametrize("texts", [*LARGE_CLUSTERS, *RACKS])
def test_a_large_cluster_is_placed_as_by_a_scan(texts: tuple[str, ...]) -> None:
    """Some tasks have a machine, tasks of two jobs are of several sizes, and the racks are of unequal length."""
    machines = racks("abbcccddddeeeee", cpus=40)
    demands = [*job("ps", 20, cpus=2), *job("worker", 100, *texts, cpus=1)]
    demands = [replace(demand, cpus=demand.cpus + index % 3) for index, demand in enumerate(demands)]
    current = {demand.hostname: f"m{index % 7}" for index, demand in enumerate(demands) if index % 5 == 0}
    assert placed(demands, machines, current) == scanned(demands, machines, current)


@pytest.mark.parametrize("texts", LARGE_CLUSTERS)
def test_the_steps_of_a_placement_grow_with_tasks_and_machines(
    texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    fits, admits = scheduler._FreeResources.fits, scheduler._JobRule.admits

    def counted_fits(resources: scheduler._FreeResources, demand: Demand) -> bool:
        nonlocal calls
        calls += 1
        return fits(resources, demand)

    def counted_admits(rule: scheduler._JobRule, index: int) -> bool:
        nonlocal calls
        calls += 1
        return admits(rule, index)

    monkeypatch.setattr(scheduler._FreeResources, "fits", counted_fits)
    monkeypatch.setattr(scheduler._JobRule, "admits", counted_admits)
    counts = []
    for tasks in (100, 1000):
        machines = racks("abcde" * (tasks // 50), cpus=1000 if "hostname:CLUSTER" in texts else 16)
        calls = 0
        place("mnist", job("worker", tasks, *texts, cpus=1), machines)
        counts.append(calls)
    assert counts[1] <= 11 * counts[0], f"{counts} steps for 100 tasks on 10 machines, and for 1,000 on 100"
