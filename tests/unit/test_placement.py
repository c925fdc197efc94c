"""Which task stands on which machine."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.errors import PlacementError
from tfdeploy.placement import Demand, Machine, Place, place

GIB = 1024**3


def machine(name: str, cpus: float = 4, memory: int = 8 * GIB, gpus: Sequence[str] = ()) -> Machine:
    return Machine(name, "Worker", "local", "", cpus, memory, tuple(gpus))


def names(count: int) -> list[Demand]:
    return [Demand(f"worker-{index}") for index in range(count)]


def rows(demands: Sequence[Demand], machines: Sequence[Machine]) -> str:
    """The places as text, a line for each task."""
    places = place("mnist", demands, machines)
    return "\n".join(f"{name} on {spot.machine} {','.join(spot.gpus)}".strip() for name, spot in places.items())


def test_tasks_are_spread_evenly() -> None:
    assert rows(names(5), [machine("m0"), machine("m1")]) == "\n".join(
        ["worker-0 on m0", "worker-1 on m1", "worker-2 on m0", "worker-3 on m1", "worker-4 on m0"]
    )


def test_a_task_goes_where_it_fits_though_more_stand_there() -> None:
    demands = [*names(1), Demand("worker-1", memory=6 * GIB), Demand("worker-2", memory=6 * GIB)]
    small, large = machine("small", memory=4 * GIB), machine("large", memory=16 * GIB)
    assert rows(demands, [small, large]) == "worker-0 on small\nworker-1 on large\nworker-2 on large"


def test_each_gpu_is_given_once() -> None:
    demands = [Demand("ps-0"), Demand("worker-0", gpus=2), Demand("worker-1", gpus=1)]
    assert rows(demands, [machine("m0", gpus="012")]) == "ps-0 on m0\nworker-0 on m0 0,1\nworker-1 on m0 2"


def test_fractions_of_a_processor_that_fill_it_fit() -> None:
    demands = [Demand(f"worker-{index}", cpus=0.6) for index in range(5)]
    assert len(place("mnist", demands, [machine("m0", cpus=3)])) == 5


def test_what_fits_nowhere_is_refused_with_a_table_of_what_is_free() -> None:
    demands = [Demand("ps-0", cpus=1), Demand("worker-0", cpus=4.5, memory=6 * GIB, gpus=2)]
    with pytest.raises(PlacementError) as refusal:
        place("mnist", demands, [machine("m0", gpus="01"), machine("m1", gpus="0", cpus=2.5)])
    first, *table = str(refusal.value).splitlines()
    assert first == (
        "mnist: worker-0: asks for 4.5 cpus, 6 GiB of memory, 2 gpus, and no machine has that free. "
        "Ask for less, or for fewer tasks. There is:"
    )
    assert table == [
        "  m0: free 3 of 4 cpus, 8 GiB of 8 GiB, 2 of 2 gpus",
        "  m1: free 2.5 of 2.5 cpus, 8 GiB of 8 GiB, 1 of 1 gpus",
    ]


def test_without_a_machine_everything_is_refused() -> None:
    with pytest.raises(PlacementError, match="worker-0: there is no machine to place it on"):
        place("mnist", names(1), [])


def test_without_a_task_no_machine_is_needed() -> None:
    assert place("mnist", [], []) == {}


def test_what_others_have_taken_is_not_given() -> None:
    taken = replace(machine("m0", gpus="012"), taken_cpus=3, taken_memory=6 * GIB, taken_gpus=2)
    assert rows([Demand("worker-0", 1, 2 * GIB, 1)], [taken]) == "worker-0 on m0 0"
    for demand in (Demand("worker-0", cpus=1.5), Demand("worker-0", memory=3 * GIB), Demand("worker-0", gpus=2)):
        with pytest.raises(PlacementError, match="m0: free 1 of 4 cpus, 2 GiB of 8 GiB, 1 of 3 gpus"):
            place("mnist", [demand], [taken])


def test_a_machines_size_is_one_line() -> None:
    assert machine("m0", cpus=2, memory=3 * GIB // 2, gpus="0").size == "2 cpus, 1.5 GiB, 1 gpus"


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
