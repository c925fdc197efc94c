"""Which machines a cluster's tasks get, what they are called, which one manages, and what fits on none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.backends.ec2 import fleets
from tests.unit.backends.ec2.fleets import GIB, GPUS, TYPES, instance, spec
from tfdeploy.backends.ec2.machine import machines
from tfdeploy.backends.ec2.machine.machines import choose_manager, machine_requests, pools
from tfdeploy.backends.ec2.machine.model import MachineSpec, MachineState
from tfdeploy.errors import SpecError
from tfdeploy.plan.scheduler import Demand, Machine, place

WITH_GPUS = {"ec2": {"instance_type": GPUS.name}}


def made(*there: MachineState, **args: Any) -> tuple[MachineSpec, ...]:
    """The machines that a cluster gets while these are there."""
    return machine_requests(spec(**args), TYPES, {one.machine: one for one in there})


def names(*there: MachineState, **args: Any) -> list[str]:
    return [one.machine for one in made(*there, **args)]


def refusal(**args: Any) -> str:
    with pytest.raises(SpecError) as error:
        made(**args)
    return str(error.value)


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({}, {"chief": ["chief"], "ps": ["ps"], "worker": ["worker"]}),
        ({"ec2": {"machine_layout": "packed"}}, {"all": ["chief", "ps", "worker"]}),
        ({"ec2": {"machine_count": 2}}, {"all": ["chief", "ps", "worker"]}),
        (
            {"ec2": {"machine_layout": "packed"}, "jobs": {"worker": WITH_GPUS}},
            {"chief": ["chief", "ps"], "worker": ["worker"]},
        ),
        (
            {"ec2": {"machine_layout": "packed"}, "jobs": {"ps": {"ec2": {"spot": True}}}},
            {"chief": ["chief", "worker"], "ps": ["ps"]},
        ),
        (
            {"ec2": {"machine_layout": "packed"}, "jobs": {"chief": {"ec2": {"machine_layout": "per-task"}}}},
            {"chief": ["chief"], "ps": ["ps", "worker"]},
        ),
        (
            {"ec2": {"machine_layout": "packed", "spot": True}, "data_service": {"workers": 2}},
            {"chief": ["chief", "worker"], "ps": ["ps", "data_dispatcher", "data_worker"]},
        ),
    ],
)
def test_jobs_that_ask_for_the_same_machines_share_them(args: dict[str, Any], found: dict[str, list[str]]) -> None:
    there = pools(spec(chief=1, ps=2, workers=2, **args))
    assert {pool: [job.name for job in jobs] for pool, jobs in there.items()} == found


def test_each_task_has_a_machine_by_default() -> None:
    assert names(ps=1, workers=2) == ["mnist-ps-m0", "mnist-worker-m0", "mnist-worker-m1"]
    kinds = made(ps=1, workers=1, jobs={"worker": WITH_GPUS})
    assert [(one.machine, one.instance_type.name) for one in kinds] == [
        ("mnist-ps-m0", "m7i.large"),
        ("mnist-worker-m0", "g6.12xlarge"),
    ]


def test_a_machine_is_called_as_its_tasks_are() -> None:
    there = names(workers=1, gpu_workers=1, jobs={"gpu_worker": WITH_GPUS})
    assert there == ["mnist-worker-m0", "mnist-gpu-worker-m0"], "a host's name has no underscore"


def test_a_number_of_machines_is_that_of_each_pool() -> None:
    assert names(ps=1, workers=5, ec2={"machine_count": 2}) == ["mnist-m0", "mnist-m1"]
    assert names(ps=1, workers=5, jobs={"worker": {"ec2": {"machine_count": 2}}}) == [
        "mnist-ps-m0",
        "mnist-worker-m0",
        "mnist-worker-m1",
    ]


@pytest.mark.parametrize(
    ("own", "count"),
    [({}, 1), ({"cpus": 1}, 3), ({"cpus": 2}, 5), ({"cpus": 1.5}, 5), ({"memory": "3GiB"}, 3), ({"memory": "2GiB"}, 2)],
    ids=str,
)
def test_packed_machines_are_as_few_as_hold_what_is_reserved(own: dict[str, Any], count: int) -> None:
    assert len(names(workers=5, ec2={"machine_layout": "packed"}, jobs={"worker": own})) == count


def test_small_tasks_are_packed_beside_large_ones() -> None:
    own = {"ps": {"cpus": 0.5}, "worker": {"cpus": 1.5}}
    assert len(names(ps=2, workers=2, ec2={"machine_layout": "packed"}, jobs=own)) == 2
    assert (
        len(names(ps=2, workers=2, ec2={"machine_layout": "packed"}, jobs={"ps": own["worker"], "worker": own["ps"]}))
        == 2
    )


def test_packed_machines_have_the_gpus_that_are_reserved() -> None:
    args = {"ps": 2, "workers": 5, "ec2": {"machine_layout": "packed", **WITH_GPUS["ec2"]}}
    assert len(names(**args, jobs={"worker": {"gpus": 2}})) == 3
    assert len(names(**args, jobs={"worker": {"gpus": 1}})) == 2


RESERVED = st.fixed_dictionaries({"cpus": st.sampled_from([0, 0.5, 1, 2]), "memory": st.integers(0, 7 * GIB)})


@given(st.integers(0, 4), st.integers(1, 6), RESERVED, RESERVED)
def test_what_is_packed_finds_its_place(ps: int, workers: int, small: dict[str, Any], large: dict[str, Any]) -> None:
    own = {"worker": large, **({"ps": small} if ps else {})}
    machines = made(ps=ps, workers=workers, ec2={"machine_layout": "packed"}, jobs=own)
    demands = [
        Demand(f"{job.name}-{index}", job.cpus, job.memory, job.gpus, job.name)
        for job in spec(ps=ps, workers=workers, jobs=own).jobs
        for index in range(job.count)
    ]
    there = [
        Machine(one.machine, "", "", "", cpus=one.instance_type.cpus, memory=one.instance_type.usable_memory)
        for one in machines
    ]
    assert len(place("mnist", demands, there)) == len(demands)


def test_the_steps_of_packing_grow_with_tasks_and_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(machine: list[float], demand: tuple[int, int, float]) -> bool:
        compared.append(machine)
        return fits(machine, demand)

    fits = machines._fits
    monkeypatch.setattr(machines, "_fits", counted)
    counts = []
    for workers in (90, 900):
        compared.clear()
        ec2 = {"machine_layout": "packed", "max_machines": 500}
        own = {"ps": {"cpus": 0.5}, "worker": {"cpus": 1}}
        assert len(names(ps=workers // 10, workers=workers, ec2=ec2, jobs=own)) > workers // 10
        counts.append(len(compared))
    assert counts[1] <= 11 * counts[0], f"{counts} steps for 99 tasks, and for 990"


@given(
    st.integers(1, 6),
    st.integers(0, 6),
    st.sampled_from(
        [
            {},
            {"ec2": {"machine_layout": "packed"}},
            {"ec2": {"machine_layout": "packed"}, "jobs": {"ps": {"ec2": {"spot": True}}}},
        ]
    ),
)
def test_names_stay_when_a_job_grows(workers: int, more: int, args: dict[str, Any]) -> None:
    before, after = (
        names(ps=1, workers=count, **{**args, "ec2": {**args.get("ec2", {}), "max_machines": 100}})
        for count in (workers, workers + more)
    )
    assert set(before) <= set(after)


def managing(found: tuple[MachineSpec, ...]) -> list[str]:
    return [one.machine for one in found if one.is_manager]


SPOT_FIRST = {"ps": 1, "workers": 2, "jobs": {"ps": {"ec2": {"spot": True}}}}


def test_the_first_that_is_no_spot_instance_manages() -> None:
    assert managing(made(ps=1, workers=2)) == ["mnist-ps-m0"]
    assert managing(made(chief=1, ps=1, workers=2, ec2={"spot": True})) == ["mnist-ps-m0"]
    assert managing(made(**SPOT_FIRST)) == ["mnist-worker-m0"]


def test_the_one_that_manages_already_goes_on() -> None:
    assert managing(made(instance("mnist-worker-m1", is_manager=True), **SPOT_FIRST)) == ["mnist-worker-m1"]
    assert managing(made(instance("mnist-worker-m1"), **SPOT_FIRST)) == ["mnist-worker-m0"]


def test_one_that_the_cluster_no_longer_has_manages_no_more() -> None:
    assert managing(made(instance("mnist-worker-m7", is_manager=True), ps=1, workers=2)) == ["mnist-ps-m0"]


@pytest.mark.parametrize("there", [[], [instance("mnist-worker-m1", is_manager=True)]])
def test_the_one_that_manages_is_never_a_spot_instance(there: list[MachineState]) -> None:
    found = made(*there, workers=3, ec2={"spot": True})
    assert [one.spot for one in found] == [not one.is_manager for one in found]
    assert len(managing(found)) == 1
    assert choose_manager(found, {}) == "mnist-worker-m0"


def test_more_machines_than_agreed_to_are_refused() -> None:
    said = "mnist: ec2.max_machines: is 2, but the cluster needs 3 machines. "
    assert refusal(ps=1, workers=2, ec2={"max_machines": 2}) == f"{said}Set max_machines=3 if that is intended."
    assert len(names(ps=1, workers=2, ec2={"max_machines": 3})) == 3


def test_twenty_machines_are_agreed_to_by_default() -> None:
    assert len(names(workers=20)) == 20
    assert "is 20, but the cluster needs 21 machines" in refusal(workers=21)


@pytest.mark.parametrize(
    ("own", "wrong"),
    [
        ({"gpus": 1}, "gpus: each task needs 1, but m7i.large (2 cpus, 8 GiB) has 0 for tasks"),
        ({"cpus": 2.5}, "cpus: each task needs 2.5, but m7i.large (2 cpus, 8 GiB) has 2 for tasks"),
        ({"memory": "8GiB"}, "memory: each task needs 8 GiB, but m7i.large (2 cpus, 8 GiB) has 7.4 GiB for tasks"),
        (
            {"gpus": 5, **WITH_GPUS},
            "gpus: each task needs 5, but g6.12xlarge (48 cpus, 192 GiB, 4 gpus) has 4 for tasks",
        ),
    ],
)
@pytest.mark.parametrize(
    "machines", [{"machine_layout": "per-task"}, {"machine_layout": "packed"}, {"machine_count": 1}]
)
def test_a_task_that_no_machine_of_its_type_holds_is_refused(
    own: dict[str, Any], wrong: str, machines: dict[str, Any]
) -> None:
    said = refusal(ps=1, workers=1, ec2=machines, jobs={"worker": own})
    assert said == f"mnist: jobs.worker.{wrong}. Choose a larger instance_type, or a smaller value."


def test_a_task_may_have_all_that_its_machine_has_for_tasks() -> None:
    own = {"cpus": 48, "gpus": 4, "memory": GPUS.usable_memory, **WITH_GPUS}
    assert names(workers=1, jobs={"worker": own}) == ["mnist-worker-m0"]
    assert "memory" in refusal(workers=1, jobs={"worker": {**own, "memory": GPUS.usable_memory + 1}})


def test_no_machine_is_made_for_it_and_it_stands_on_the_one_that_manages() -> None:
    args: dict[str, Any] = {"chief": 1, "ps": 1, "workers": 2}
    machines = [one.machine for one in machine_requests(fleets.spec(**args), fleets.TYPES, {})]
    found = machine_requests(fleets.spec(**args, tensorboard=True), fleets.TYPES, {})
    assert [one.machine for one in found] == machines
    for there in ([], [fleets.instance("mnist-worker-m1", is_manager=True)]):
        made = fleets.plan(*there, **args, tensorboard=True)
        manager = next(machine.name for machine in made.machines if machine.role == "Master")
        assert made.tasks[-1].machine == manager
    packed = {**args, "ec2": {"machine_layout": "packed"}, "tensorboard": True, "jobs": {"worker": {"cpus": 2}}}
    assert len(machine_requests(fleets.spec(**packed), fleets.TYPES, {})) == len(
        machine_requests(fleets.spec(**{**packed, "tensorboard": False}), fleets.TYPES, {})
    )


def test_on_ec2_it_stands_where_it_is_placed() -> None:
    own = {
        "tensorboard": {"container": {"placement": ["hostname:IS:mnist-worker-m1"]}},
        "ps": {"ec2": {"instance_type": "m7i.large"}},
    }
    made = fleets.plan(ps=1, workers=2, tensorboard=True, jobs=own)
    assert made.tasks[-1].machine == "mnist-worker-m1"


def test_only_its_crew_has_types_of_machines() -> None:
    own = {job: {"ec2": {"instance_type": "m7i.large"}} for job in ("ps", "worker")}
    made = fleets.plan(ps=1, workers=1, ec2={"instance_type": ""}, tensorboard=True, jobs=own)
    assert made.tasks[-1].hostname == "tensorboard-0"
