"""On EC2 no machine is made for TensorBoard: it stands on one that is there for others."""

from typing import Any

from tests.unit.backends.ec2 import fleets
from tfdeploy.backends.ec2.machine.layout import machine_requests

BOARD = "tensorboard-0"


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
    assert made.tasks[-1].hostname == BOARD
