"""What EC2 says becomes machines to place tasks on; what the plan does to them; which are not made again."""

from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import ID
from tests.unit.backends.ec2.fleets import CLUSTER, ECS, ECS_GPU, GPUS, GRAVITON, PAIR, PS, SUBNET, WORKER, plan, spec
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.backends.ec2.machine import machines, model
from tfdeploy.backends.ec2.machine.machines import _lines, _new_swarm
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.backends.ec2.planner import _with_disks
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import SpecError
from tfdeploy.plan.scheduler import Machine
from tfdeploy.spec.ec2 import MOST_VOLUMES


def machine(name: str, *there: MachineState, **args: Any) -> Machine:
    """One machine of a cluster, of whose machines these are there."""
    return next(one for one in plan(*there, **{**PAIR, **args}).machines if one.name == name)


def test_before_a_cluster_has_an_id_nothing_in_the_account_is_its_own() -> None:
    assert machines.id_tag(CLUSTER) == {"tfdeploy:cluster-id": ID}
    assert machines.id_tag({**CLUSTER, "id": ""}) == {"tfdeploy:cluster-id": "new"}


def test_a_machine_is_what_its_type_says_and_one_that_stands_has_its_addresses() -> None:
    there = machine("mnist-ps-m0", replace(PS, private_ip="172.31.0.9"))
    assert (there.role, there.public_ip, there.address) == ("Master", "198.51.100.7", "172.31.0.9")
    assert model.ec2_machine(there).instance_id == "i-mnist-ps-m0"
    made = machine("mnist-worker-m0", jobs={"worker": {"ec2": {"instance_type": GPUS.name, "spot": True}}})
    assert (made.cpus, made.memory, made.gpus) == (48, GPUS.usable_memory, ("0", "1", "2", "3"))
    assert (made.role, made.provider, made.region, made.size) == ("Worker", "Amazon", "us-west-2", "g6.12xlarge")
    assert made.labels == {"pool": "worker", "instance_type": GPUS.name, "zone": "us-west-2a", "market": "spot"}
    planned = model.ec2_machine(made)
    assert (planned.image_id, planned.instance_id, planned.request.spot) == ("ami-0d", "", True)


@pytest.mark.parametrize(
    "args",
    [
        {"ps": 1, "jobs": {"worker": {"ec2": {"instance_type": GPUS.name, "machine_count": 2}}}},
        {"chief": 1, "ps": 3, "ec2": {"machine_layout": "packed"}, "jobs": {"worker": {"ec2": {"spot": True}}}},
        {"chief": 1, "ps": 3, "ec2": {"machine_count": 2}},
    ],
    ids=str,
)
def test_a_task_stands_on_a_machine_that_was_made_for_its_job(args: dict[str, Any]) -> None:
    made = plan(workers=4, **args)
    jobs = {one.name: one.jobs for one in made.machines}
    assert [task.hostname for task in made.tasks if task.job not in jobs[task.machine]] == []
    assert {job for whose in jobs.values() for job in whose} == {task.job for task in made.tasks}


OLDER = replace(PS, image_id="ami-01")


def test_a_machine_that_stands_keeps_its_image_unless_another_one_is_named_or_its_type_changes() -> None:
    def image(name: str, there: MachineState, **args: Any) -> str:
        return model.ec2_machine(machine(name, there, **args)).image_id

    assert image("mnist-ps-m0", OLDER) == "ami-01"
    assert image("mnist-ps-m0", OLDER, ec2={"ami": "ami-0f"}) == "ami-0f"
    assert image("mnist-worker-m0", OLDER) == "ami-0c"
    for kind, name in ((GPUS, "ami-0d"), (GRAVITON, "ami-0e")):
        assert image("mnist-ps-m0", PS, jobs={"ps": {"ec2": {"instance_type": kind.name}}}) == name


def sentences(*there: MachineState, **args: Any) -> list[str]:
    made = plan(*there, **{**PAIR, **args})
    return [line for one in made.machines for line in _lines(made, one)]


def of_worker(**ec2: Any) -> dict[str, Any]:
    return {"jobs": {"worker": {"ec2": ec2}}}


DISKS = of_worker(ebs_volumes=["200GiB:/scratch", "vol-0a1b2c3d:/data"])


def test_a_machine_that_is_made_or_is_stopped_is_told_with_what_it_is_made_of_or_starts_it() -> None:
    labels = "pool=worker, instance_type=g6.12xlarge, zone=us-west-2a, market=on-demand"
    made = f"mnist-worker-m0: will be created: g6.12xlarge, ami-0d; {labels}; gpu=4"
    assert sentences(PS, **of_worker(instance_type=GPUS.name)) == [made]
    assert sentences(PS, **DISKS)[0].endswith("market=on-demand; ebs_volumes: 200GiB, vol-0a1b2c3d")
    (line,) = sentences(PS, replace(WORKER, state="stopped"))
    assert line.startswith(
        "mnist-worker-m0: is stopped and will not be started. Run `aws ec2 start-instances --instance-ids i-"
    )
    idle = replace(plan(replace(PS, instance_type="m5.large"), WORKER, **PAIR), tasks=())
    assert _lines(idle, idle.machines[0])[0].endswith("(m5.large -> m7i.large); tasks that restart: none")


def test_of_machines_that_stay_nothing_is_told() -> None:
    assert sentences(PS, WORKER) == sentences(OLDER, WORKER) == []
    assert sentences(*(replace(one, access="ssm") for one in (PS, WORKER)), ec2={"connectivity": "ssm"}) == []
    with_disks = replace(WORKER, disks="200GiB vol-0a1b2c3d")
    elsewhere = of_worker(ebs_volumes=["200GiB:/tmp/scratch", "vol-0a1b2c3d:/data"])
    assert sentences(PS, with_disks, **DISKS) == sentences(PS, with_disks, **elsewhere) == []


@pytest.mark.parametrize(
    ("there", "args", "changes"),
    [
        ((PS, WORKER), of_worker(ami="ami-0f"), f"{ECS} -> ami-0f"),
        ((PS, WORKER), of_worker(instance_type=GPUS.name), f"m7i.large -> g6.12xlarge, {ECS} -> {ECS_GPU}"),
        ((PS, WORKER), of_worker(spot=True), "on-demand -> spot"),
        ((PS, WORKER), DISKS, "no ebs_volumes -> 200GiB vol-0a1b2c3d"),
        ((PS, replace(WORKER, files="fs-0a")), {}, "fs-0a -> no efs"),
        ((PS, replace(WORKER, subnet_id="subnet-0b")), {}, "subnet-0b -> subnet-0a"),
        ((PS, replace(WORKER, access="ssm")), {}, "ssm access -> public access"),
        (
            (replace(PS, access="private"), WORKER),
            {"ec2": {"connectivity": "private"}},
            "public access -> private access",
        ),
    ],
)
def test_a_machine_that_is_made_anew_is_told_with_what_stands_there(
    there: tuple[MachineState, ...], args: dict[str, Any], changes: str
) -> None:
    told = f"mnist-worker-m0: will be replaced ({changes}); tasks that restart: worker-0"
    assert sentences(*there, **args) == [told]


@pytest.mark.parametrize(
    ("args", "takers"),
    [
        ({"ec2": {"ebs_volumes": ["vol-0a1b2c3d:/data"]}}, "mnist-ps-m0, mnist-worker-m0"),
        ({"workers": 2, **of_worker(ebs_volumes=["vol-0a1b2c3d:/data"])}, "mnist-worker-m0, mnist-worker-m1"),
    ],
)
def test_a_volume_is_refused_to_more_than_one_machine(args: dict[str, Any], takers: str) -> None:
    with pytest.raises(SpecError) as error:
        plan(**{**PAIR, **args})
    remedy = "Request it under `jobs`, for a job with one machine. Set ec2.efs for files that all machines share."
    said = f"mnist: ec2.ebs_volumes: vol-0a1b2c3d cannot be attached to 2 machines: {takers}. {remedy}"
    assert str(error.value) == said
    made = plan(**PAIR, ec2={"machine_count": 1, "ebs_volumes": ["vol-0a1b2c3d:/data"]})
    assert [model.ec2_machine(one).disks for one in made.machines] == [("vol-0a1b2c3d",)], "jobs on it share it"


def test_containers_mount_the_disks_of_their_machines_whose_tag_is_one_that_ec2_takes() -> None:
    most = [f"vol-{number:017x}:/{number}" for number in range(MOST_VOLUMES)]
    planned = model.ec2_machine(machine("mnist-worker-m0", **of_worker(ebs_volumes=most)))
    assert len(" ".join(planned.disks)) <= 256
    asked = spec(**PAIR, container={"volumes": ["/a:/b"]}, **of_worker(ebs_volumes=["9GiB:/c", "9GiB:/d"]))
    jobs = {job.name: _with_disks(job).container.volumes for job in asked.jobs}
    assert jobs == {"ps": ("/a:/b",), "worker": ("/a:/b", "/mnt/volumes/sdf:/c", "/mnt/volumes/sdg:/d")}


def test_the_loss_of_the_machine_that_manages_is_told() -> None:
    told = "mnist-ps-m0: manages the Swarm, so a new Swarm is created, and all tasks restart"
    lost = "the record is restored from S3; checkpoints that were only on its disk are lost"
    assert _new_swarm(plan(WORKER, **PAIR)) == [f"{told}; {lost}"]
    other = replace(PS, instance_type=GPUS.name)
    assert _new_swarm(plan(other, WORKER, **PAIR)) == [told]
    assert _new_swarm(plan(PS, WORKER, **PAIR)) == _new_swarm(plan(**PAIR)) == _new_swarm(plan(PS, **PAIR)) == []


NEAR, FAR = SUBNET, replace(SUBNET, subnet_id="subnet-0b", zone="us-west-2b")
ZONES = "m7i.large are all available in {}, but the subnets are in: {}. "
REMEDY = "Choose other types, or a subnet in another zone."


@pytest.mark.parametrize(
    ("args", "found", "offered", "said"),
    [
        ({}, [NEAR, FAR], {"us-west-2c"}, f"ec2.instance_type: {ZONES.format('us-west-2c', 'us-west-2a, us-west-2b')}"),
        (
            {"ec2": {"subnet_id": "subnet-0a"}},
            [NEAR],
            {"us-west-2b"},
            f"ec2.subnet_id: {ZONES.format('us-west-2b', 'us-west-2a')}",
        ),
        ({}, [NEAR], set(), f"ec2.instance_type: {ZONES.format('no zone of the region', 'us-west-2a')}"),
        ({}, [], {"us-west-2b"}, f"ec2.instance_type: {ZONES.format('us-west-2b', 'no zone')}"),
    ],
)
def test_types_that_no_subnet_has_are_refused(
    args: dict[str, Any], found: list[Any], offered: set[str], said: str
) -> None:
    with pytest.raises(SpecError) as error:
        machines._choose_subnet(spec(**PAIR, **args), found, frozenset(offered))
    assert str(error.value) == f"mnist: {said}{REMEDY}"
    for zones, subnet in (({"us-west-2a", "us-west-2b"}, NEAR), ({"us-west-2b"}, FAR)):
        assert machines._choose_subnet(spec(**PAIR), [NEAR, FAR], frozenset(zones)) == subnet, "the first that has all"


def test_the_shared_folder_is_the_one_that_is_asked_for_or_the_clusters_own() -> None:
    assert machines.shared_folder(CLUSTER, spec(**PAIR, train_dir="/mnt/tfdeploy/runs")) == "runs"
    for other in ("", "/mnt/tfdeploys/runs", "s3://runs"):
        assert machines.shared_folder(CLUSTER, spec(**PAIR, train_dir=other)) == "mnist-k3v9x2abcd"


@pytest.mark.parametrize(
    ("ended", "there", "args", "unneeded"),
    [
        (True, [PS, WORKER], {}, set()),
        (True, [PS], {}, {"mnist-worker-m0"}),
        (True, [WORKER], {}, {"mnist-ps-m0", "mnist-worker-m0"}),
        (True, [], {}, {"mnist-ps-m0", "mnist-worker-m0"}),
        (None, [PS], {}, set()),
        (False, [PS], {}, set()),
        (True, [PS], {"run_id": "again"}, set()),
    ],
)
def test_of_a_finished_run_what_is_gone_is_not_made_again(
    ended: bool | None, there: list[MachineState], args: dict[str, Any], unneeded: set[str]
) -> None:
    """`ended` is None where there is no record of a run."""
    if ended is not None:
        job = RunState(plan(**PAIR).run, 0.0)
        job.result = RunResult("succeeded", "", 1.0) if ended else None
        RecordCopy(CLUSTER).record.save(job)
    made = plan(*there, run=RecordCopy(CLUSTER).record.current(), **PAIR, **args)
    assert set(made.unneeded) == unneeded


def test_tasks_of_machines_that_are_not_made_again_do_not_stand() -> None:
    made = plan(PS, **PAIR)
    assert [task.hostname for task in made.needed_tasks] == ["ps-0", "worker-0"]
    over = replace(made, unneeded=frozenset({"mnist-worker-m0"}))
    assert [task.hostname for task in over.needed_tasks] == ["ps-0"]
    assert over.tasks == made.tasks
