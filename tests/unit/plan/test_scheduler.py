"""Which task stands on which machine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tfdeploy.errors import PlacementError
from tfdeploy.plan.constraints import parse
from tfdeploy.plan.scheduler import Demand, Machine, place

GIB = 1024**3


def machine(name: str, cpus: float = 4, memory: int = 8 * GIB, gpus: Sequence[str] = ()) -> Machine:
    return Machine(name, "Worker", "local", "", cpus, memory, tuple(gpus))


def names(count: int) -> list[Demand]:
    return [Demand(f"worker-{index}") for index in range(count)]


def rows(demands: Sequence[Demand], machines: Sequence[Machine]) -> str:
    """The places as text, a line for each task."""
    places = place("mnist", demands, machines)
    return "\n".join(f"{name} on {spot.machine} {','.join(spot.gpus)}".strip() for name, spot in places.items())


def test_a_task_goes_where_it_fits_though_more_stand_there() -> None:
    demands = [*names(1), Demand("worker-1", memory=6 * GIB), Demand("worker-2", memory=6 * GIB)]
    small, large = machine("small", memory=4 * GIB), machine("large", memory=16 * GIB)
    assert rows(demands, [small, large]) == "worker-0 on small\nworker-1 on large\nworker-2 on large"


def test_a_task_keeps_its_gpus_when_another_job_grows() -> None:
    demands = [Demand("chief-0", gpus=1), Demand("worker-0", gpus=2), Demand("worker-1", gpus=1)]
    machines, current = [machine("m0", gpus="0123")], {"worker-0": "m0", "worker-1": "m0"}
    places = place("mnist", demands, machines, current, {"worker-0": ("0", "1"), "worker-1": ("2",)})
    assert {name: spot.gpus for name, spot in places.items()} == {
        "chief-0": ("3",),
        "worker-0": ("0", "1"),
        "worker-1": ("2",),
    }


def test_gpus_that_are_gone_or_on_another_machine_are_not_kept() -> None:
    demands = [Demand("worker-0", gpus=1), Demand("worker-1", gpus=2)]
    current = {"worker-0": "m1", "worker-1": "m0"}
    places = place("mnist", demands, [machine("m0", gpus="012")], current, {"worker-0": ("0",), "worker-1": ("0", "9")})
    assert {name: spot.gpus for name, spot in places.items()} == {"worker-0": ("1",), "worker-1": ("0", "2")}


def test_placement_is_greedy_and_refuses_what_only_a_search_would_find() -> None:
    """3 + 3 and 2 + 2 + 2 would fill both machines; greedy placement spreads the two large tasks."""
    demands = [*job("worker", 2, cpus=3), *job("ps", 3, cpus=2)]
    with pytest.raises(PlacementError, match="ps-2: asks for 2 cpus, and no machine has that free"):
        place("mnist", demands, racks("aa", cpus=6))


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
    sentence = r"there is no machine to place it on\. Add a machine, or wait until one is ready\.$"
    with pytest.raises(PlacementError, match=f"^mnist: worker-0: {sentence}"):
        place("mnist", names(1), [])


def test_what_others_have_taken_is_not_given() -> None:
    taken = replace(machine("m0", gpus="012"), taken_cpus=3, taken_memory=6 * GIB, taken_gpus=2)
    assert rows([Demand("worker-0", 1, 2 * GIB, 1)], [taken]) == "worker-0 on m0 0"
    for demand in (Demand("worker-0", cpus=1.5), Demand("worker-0", memory=3 * GIB), Demand("worker-0", gpus=2)):
        with pytest.raises(PlacementError, match="m0: free 1 of 4 cpus, 2 GiB of 8 GiB, 1 of 3 gpus"):
            place("mnist", [demand], [taken])


def test_a_machines_size_is_one_line() -> None:
    assert machine("m0", cpus=2, memory=3 * GIB // 2, gpus="0").size == "2 cpus, 1.5 GiB, 1 gpus"
    assert replace(machine("m0", cpus=2, gpus="0"), kind="g6.xlarge").size == "g6.xlarge"


def racks(text: str, cpus: float = 4) -> list[Machine]:
    """A machine for each letter, in the rack of that letter; none for a dot."""
    labels = ({"rack": letter} if letter != "." else {} for letter in text)
    return [
        replace(machine(f"m{index}", cpus), address=f"10.0.0.{index}", labels=found)
        for index, found in enumerate(labels)
    ]


def job(name: str, count: int, *texts: str, cpus: float = 0) -> list[Demand]:
    constraints = tuple(parse("here", text) for text in texts)
    return [Demand(f"{name}-{index}", cpus, job=name, constraints=constraints) for index in range(count)]


def where(demands: Sequence[Demand], machines: Sequence[Machine], standing: Mapping[str, str] | None = None) -> str:
    """The numbers of the machines, in the order of the tasks."""
    return "".join(spot.machine[1:] for spot in place("mnist", demands, machines, standing or {}).values())


def at(numbers: str, name: str = "worker") -> dict[str, str]:
    return {f"{name}-{index}": f"m{number}" for index, number in enumerate(numbers)}


@pytest.mark.parametrize(
    ("text", "count", "layout", "found"),
    [
        ("hostname:UNIQUE", 3, "abc", "012"),
        ("rack:UNIQUE", 2, "aab", "02"),
        ("rack:CLUSTER", 3, "aab", "010"),
        ("rack:CLUSTER:b", 2, "aab", "22"),
        ("rack:GROUP_BY", 4, "aab", "0212"),
        ("rack:GROUP_BY:2", 3, "aabc", "023"),
        ("rack:GROUP_BY:3", 2, "aab", "02"),
        ("hostname:LIKE:m1|m2", 3, "aab", "121"),
        ("hostname:UNLIKE:m1", 3, "aab", "020"),
        ("rack:UNLIKE:a", 3, "a.b", "121"),
        ("rack:MAX_PER:2", 4, "aab", "0122"),
        ("address:IS:10.0.0.1", 2, "aab", "11"),
    ],
)
def test_an_operator_decides_where_tasks_stand(text: str, count: int, layout: str, found: str) -> None:
    assert where(job("worker", count, text), racks(layout)) == found


def test_a_machine_takes_the_tasks_of_its_jobs_alone() -> None:
    machines = [
        replace(one, jobs=whose) for one, whose in zip(racks("ab"), [("ps", "chief"), ("worker",)], strict=True)
    ]
    assert where(job("chief", 1) + job("ps", 1) + job("worker", 3), machines) == "00111"
    assert where(job("worker", 1), machines, at("0")) == "1"
    assert where(job("worker", 3), [*machines, machine("m2")]) == "121"
    with pytest.raises(PlacementError, match=r"worker-1: asks for 3 cpus, and no machine of its job has that free"):
        place("mnist", job("worker", 2, cpus=3), machines)


def test_small_tasks_make_way_for_big_ones() -> None:
    machines = [*racks("ab", cpus=1), replace(machine("m2", cpus=4))]
    demands = [*job("ps", 2, "hostname:UNIQUE", cpus=1), *job("worker", 1, cpus=4)]
    assert where([demands[0], demands[2]], [machines[2], machines[0]]) == "02"
    assert where(demands, machines[::-1]) == "102"


def test_all_tasks_of_a_cluster_find_the_rack_that_holds_them() -> None:
    assert where(job("worker", 6, "rack:CLUSTER", cpus=2), racks("abbb")) == "123123"


def test_a_task_stays_where_it_stands_though_the_spread_is_uneven() -> None:
    assert where(job("worker", 4), racks("aaa"), at("222")) == "2220"


def test_a_task_moves_when_its_machine_is_gone_or_full_or_forbidden() -> None:
    machines = racks("aab")
    assert where(job("worker", 3), machines, at("097")) == "012"
    assert where(job("worker", 3, cpus=2), machines, at("111")) == "110"
    assert where(job("worker", 3, "rack:IS:a"), machines, at("120")) == "100"
    assert where(job("worker", 3, "hostname:UNIQUE"), machines, at("111")) == "102"
    assert where(job("worker", 4, "rack:GROUP_BY"), machines, at("0002")) == "0022"


def test_a_standing_task_moves_only_where_another_finds_no_place_otherwise() -> None:
    demands = [*job("worker", 2, cpus=2), *job("ps", 1, cpus=4)]
    assert where(demands, racks("aa"), at("01")) == "110"
    assert where(demands, racks("aaa"), at("01")) == "012"


@pytest.mark.parametrize(
    ("demands", "message", "table"),
    [
        (
            job("worker", 1, "rack:IS:a", "hostname:IS:m1"),
            "mnist: worker-0: no machine satisfies rack:IS:a and hostname:IS:m1. Change",
            ["  m0: rack a, hostname m0", "  m1: rack b, hostname m1", "  m2: no rack, hostname m2"],
        ),
        (
            job("worker", 3, "rack:UNIQUE"),
            "mnist: worker-2: rack:UNIQUE leaves no machine for it. Change",
            [
                "  m0: rack a, 1 of its job's tasks",
                "  m1: rack b, 1 of its job's tasks",
                "  m2: no rack, 0 of its job's tasks",
            ],
        ),
        (
            job("worker", 3, "rack:LIKE:b", cpus=2),
            "mnist: worker-2: asks for 2 cpus, and no machine that rack:LIKE:b allows has that free. Ask for less",
            [
                "  m0: free 4 of 4 cpus, 8 GiB of 8 GiB, 0 of 0 gpus",
                "  m1: free 0 of 4 cpus, 8 GiB of 8 GiB, 0 of 0 gpus",
                "  m2: free 4 of 4 cpus, 8 GiB of 8 GiB, 0 of 0 gpus",
            ],
        ),
    ],
)
def test_a_refusal_names_the_task_and_what_bars_it(demands: list[Demand], message: str, table: list[str]) -> None:
    with pytest.raises(PlacementError) as refusal:
        place("mnist", demands, racks("ab."))
    first, *rest = str(refusal.value).splitlines()
    assert first.startswith(message)
    assert rest == table
