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

WITH_GPUS: dict[str, Any] = {"ec2": {"instance_type": GPUS.name}}
SPOT = {"ec2": {"spot": True}}
PACKED: dict[str, Any] = {"machine_layout": "packed"}


def made(*there: MachineState, **args: Any) -> tuple[MachineSpec, ...]:
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
        ({"ec2": PACKED}, {"all": ["chief", "ps", "worker"]}),
        ({"ec2": {"machine_count": 2}}, {"all": ["chief", "ps", "worker"]}),
        ({"ec2": PACKED, "jobs": {"worker": WITH_GPUS}}, {"chief": ["chief", "ps"], "worker": ["worker"]}),
        ({"ec2": PACKED, "jobs": {"ps": SPOT}}, {"chief": ["chief", "worker"], "ps": ["ps"]}),
        (
            {"ec2": PACKED, "jobs": {"chief": {"ec2": {"machine_layout": "per-task"}}}},
            {"chief": ["chief"], "ps": ["ps", "worker"]},
        ),
        (
            {"ec2": {**PACKED, "spot": True}, "data_service": {"workers": 2}},
            {"chief": ["chief", "worker"], "ps": ["ps", "data_dispatcher", "data_worker"]},
        ),
    ],
)
def test_jobs_that_ask_for_the_same_machines_share_them(args: dict[str, Any], found: dict[str, list[str]]) -> None:
    there = pools(spec(chief=1, ps=2, workers=2, **args))
    assert {pool: [job.name for job in jobs] for pool, jobs in there.items()} == found


def test_each_task_has_a_machine_or_each_pool_a_number_and_they_are_called_as_their_tasks() -> None:
    assert names(ps=1, workers=2) == ["mnist-ps-m0", "mnist-worker-m0", "mnist-worker-m1"]
    there = names(workers=1, gpu_workers=1, jobs={"gpu_worker": WITH_GPUS})
    assert there == ["mnist-worker-m0", "mnist-gpu-worker-m0"], "a host's name has no underscore"
    assert names(ps=1, workers=5, ec2={"machine_count": 2}) == ["mnist-m0", "mnist-m1"]
    two = names(ps=1, workers=5, jobs={"worker": {"ec2": {"machine_count": 2}}})
    assert two == ["mnist-ps-m0", "mnist-worker-m0", "mnist-worker-m1"]


HALF, MOST = {"cpus": 0.5}, {"cpus": 1.5}


@pytest.mark.parametrize(
    ("ps", "jobs", "count"),
    [
        (0, {}, 1),
        (0, {"worker": {"cpus": 1}}, 3),
        (0, {"worker": {"cpus": 2}}, 5),
        (0, {"worker": MOST}, 5),
        (0, {"worker": {"memory": "3GiB"}}, 3),
        (0, {"worker": {"memory": "2GiB"}}, 2),
        # Small tasks are beside large ones.
        (5, {"ps": HALF, "worker": MOST}, 5),
        (5, {"ps": MOST, "worker": HALF}, 5),
        (2, {"ps": WITH_GPUS, "worker": {"gpus": 2, **WITH_GPUS}}, 3),
        (2, {"ps": WITH_GPUS, "worker": {"gpus": 1, **WITH_GPUS}}, 2),
    ],
    ids=str,
)
def test_packed_machines_are_as_few_as_hold_what_is_reserved(ps: int, jobs: dict[str, Any], count: int) -> None:
    assert len(names(ps=ps, workers=5, ec2=PACKED, jobs=jobs)) == count


RESERVED = st.fixed_dictionaries({"cpus": st.sampled_from([0, 0.5, 1, 2]), "memory": st.integers(0, 7 * GIB)})


@given(st.integers(0, 4), st.integers(1, 6), RESERVED, RESERVED)
def test_what_is_packed_finds_its_place(ps: int, workers: int, small: dict[str, Any], large: dict[str, Any]) -> None:
    own = {"worker": large, **({"ps": small} if ps else {})}
    machines = made(ps=ps, workers=workers, ec2=PACKED, jobs=own)
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
        ec2 = {**PACKED, "max_machines": 500}
        own = {"ps": {"cpus": 0.5}, "worker": {"cpus": 1}}
        assert len(names(ps=workers // 10, workers=workers, ec2=ec2, jobs=own)) > workers // 10
        counts.append(len(compared))
    assert counts[1] <= 11 * counts[0], f"{counts} steps for 99 tasks, and for 990"


@given(
    st.integers(1, 6), st.integers(0, 6), st.sampled_from([{}, {"ec2": PACKED}, {"ec2": PACKED, "jobs": {"ps": SPOT}}])
)
def test_names_stay_when_a_job_grows(workers: int, more: int, args: dict[str, Any]) -> None:
    before, after = (
        names(ps=1, workers=count, **{**args, "ec2": {**args.get("ec2", {}), "max_machines": 100}})
        for count in (workers, workers + more)
    )
    assert set(before) <= set(after)


def managing(found: tuple[MachineSpec, ...]) -> list[str]:
    return [one.machine for one in found if one.is_manager]


SPOT_FIRST = {"ps": 1, "workers": 2, "jobs": {"ps": SPOT}}


def test_the_one_that_manages_goes_on_or_the_first_that_is_no_spot_instance_does() -> None:
    assert managing(made(ps=1, workers=2)) == ["mnist-ps-m0"]
    assert managing(made(chief=1, ps=1, workers=2, **SPOT)) == ["mnist-ps-m0"]
    assert managing(made(**SPOT_FIRST)) == ["mnist-worker-m0"]
    assert managing(made(instance("mnist-worker-m1", is_manager=True), **SPOT_FIRST)) == ["mnist-worker-m1"]
    assert managing(made(instance("mnist-worker-m1"), **SPOT_FIRST)) == ["mnist-worker-m0"]
    gone = instance("mnist-worker-m7", is_manager=True)
    assert managing(made(gone, ps=1, workers=2)) == ["mnist-ps-m0"], "the cluster no longer has the other one"


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
    assert len(names(workers=20)) == 20, "the default"
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
@pytest.mark.parametrize("machines", [{"machine_layout": "per-task"}, PACKED, {"machine_count": 1}])
def test_a_task_that_no_machine_of_its_type_holds_is_refused(
    own: dict[str, Any], wrong: str, machines: dict[str, Any]
) -> None:
    said = refusal(ps=1, workers=1, ec2=machines, jobs={"worker": own})
    assert said == f"mnist: jobs.worker.{wrong}. Choose a larger instance_type, or a smaller value."


def test_a_task_may_have_all_that_its_machine_has_for_tasks() -> None:
    own = {"cpus": 48, "gpus": 4, "memory": GPUS.usable_memory, **WITH_GPUS}
    assert names(workers=1, jobs={"worker": own}) == ["mnist-worker-m0"]
    assert "memory" in refusal(workers=1, jobs={"worker": {**own, "memory": GPUS.usable_memory + 1}})


def test_no_machine_is_made_for_tensorboard_which_stands_on_the_one_that_manages_or_where_it_is_placed() -> None:
    args: dict[str, Any] = {"chief": 1, "ps": 1, "workers": 2}
    assert names(**args, tensorboard=True) == names(**args)
    for there in ([], [instance("mnist-worker-m1", is_manager=True)]):
        planned = fleets.plan(*there, **args, tensorboard=True)
        manager = next(machine.name for machine in planned.machines if machine.role == "Master")
        assert planned.tasks[-1].machine == manager
    packed = {**args, "ec2": PACKED, "jobs": {"worker": {"cpus": 2}}}
    assert len(names(**packed, tensorboard=True)) == len(names(**packed))
    placed = {"tensorboard": {"container": {"placement": ["hostname:IS:mnist-worker-m1"]}}}
    own = {job: {"ec2": {"instance_type": "m7i.large"}} for job in ("ps", "worker")}
    types: dict[str, Any] = {"ec2": {"instance_type": ""}, "jobs": {**own, **placed}}
    assert fleets.plan(**types, ps=1, workers=2, tensorboard=True).tasks[-1].machine == "mnist-worker-m1"
