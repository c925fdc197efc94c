"""What is asked of EC2 instances: the cluster's, a job's own, what all have in common, and what is refused."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.errors import SpecError
from tfdeploy.instances import EbsVolume, FleetSpec, InstanceSpec


def jobs(**args: Any) -> dict[str, InstanceSpec]:
    """Job to its instances, of one ps and one worker."""
    return {job.name: job.instance for job in spec(ps=1, workers=1, **args).jobs}


def test_nothing_asked_is_the_default() -> None:
    assert jobs() == {"ps": InstanceSpec(), "worker": InstanceSpec()}
    assert InstanceSpec() == InstanceSpec("", "", False, "per task", 100, "gp3")
    assert spec(workers=1).fleet == FleetSpec()
    assert FleetSpec() == FleetSpec(
        "", "", "", "", "ec2-user", (), "", "", "", {}, 20, 259_200.0, 900.0, 0.0, "public", True
    )


CLUSTERS: dict[str, Any] = {
    "instance_type": "m7i.large",
    "ami": "ami-0a1b",
    "spot": True,
    "machines": "packed",
    "root_volume_size": "80GiB",
    "root_volume_type": "io2",
}
OWN: dict[str, Any] = {
    "instance_type": "g6.xlarge",
    "ami": "deep-learning",
    "spot": False,
    "machines": "2",
    "root_volume_size": "200GiB",
    "root_volume_type": "gp2",
}
SCRATCH, OWN_VOLUME = EbsVolume("/scratch", 200), EbsVolume("/data", volume_id="vol-0123456789abcdef0")


def test_what_is_the_clusters_is_every_jobs() -> None:
    both = InstanceSpec("m7i.large", "ami-0a1b", False, "packed", 80, "io2")
    assert jobs(**{**CLUSTERS, "spot": False}) == {"ps": both, "worker": both}


def test_a_parameter_server_is_on_a_spot_instance_only_by_a_word_of_its_own() -> None:
    asked = spec(chief=1, evaluator=1, ps=1, workers=1, spot=True)
    spots = {"chief": True, "ps": False, "worker": True, "evaluator": True}
    assert {job.name: job.instance.spot for job in asked.jobs} == spots
    for own in (True, False):
        assert jobs(spot=own, jobs={"ps": {"spot": True}})["ps"].spot
        assert not jobs(spot=own, jobs={"ps": {"cpus": 1}})["ps"].spot


def test_a_jobs_own_stands_over_the_clusters() -> None:
    found = jobs(**CLUSTERS, jobs={"worker": OWN})
    assert found["ps"] == InstanceSpec("m7i.large", "ami-0a1b", False, "packed", 80, "io2")
    assert found["worker"] == InstanceSpec("g6.xlarge", "deep-learning", False, "2", 200, "gp2")


@pytest.mark.parametrize("key", OWN)
def test_each_may_be_one_jobs_own_alone(key: str) -> None:
    found = jobs(**CLUSTERS, jobs={"worker": {key: OWN[key]}})
    assert found["worker"] == jobs(**{**CLUSTERS, key: OWN[key]})["worker"]
    assert found["worker"] != jobs(**CLUSTERS)["worker"]


@pytest.mark.parametrize(("size", "gib"), [("1GiB", 1), (1, 1), ("1.5GiB", 2), ("100GiB", 100), ("1TiB", 1024)])
def test_a_disk_is_of_whole_gib_and_never_less_than_asked_for(size: str | int, gib: int) -> None:
    assert jobs(root_volume_size=size)["ps"].root_volume_size == gib


def test_a_jobs_volumes_are_added_to_the_clusters() -> None:
    found = jobs(ebs_volumes=["200GiB:/scratch"], jobs={"worker": {"ebs_volumes": ["vol-0123456789abcdef0:/data"]}})
    assert (found["ps"].ebs_volumes, found["worker"].ebs_volumes) == ((SCRATCH,), (SCRATCH, OWN_VOLUME))
    assert [one.source for one in found["worker"].ebs_volumes] == ["200GiB", "vol-0123456789abcdef0"]


def test_a_volume_is_of_whole_gib_and_never_less_than_asked_for() -> None:
    found = jobs(ebs_volumes=["64MiB:/a", "1.5GiB:/b", "64TiB:/c"])["ps"].ebs_volumes
    assert [one.size for one in found] == [1, 2, 65_536]


def test_what_all_have_in_common_is_as_asked() -> None:
    given: dict[str, Any] = {
        "region": "us-gov-west-1",
        "vpc_id": "vpc-0a1b",
        "subnet_id": "subnet-0a1b",
        "ssh_key": "~/.ssh/cluster.pub",
        "ssh_user": "ubuntu",
        "ssh_from": ["203.0.113.7/32", "2001:db8::/64", "anywhere"],
        "placement_group": "near",
        "instance_profile": "pulls",
        "efs": "fs-0a1b",
        "tags": {"team": "vision"},
        "max_machines": 3,
        "lifetime": "1h30m",
        "idle": 40,
        "budget": 12,
        "access": "ssm",
        "keep_record": False,
    }
    found = spec(workers=1, **given).fleet
    read = {
        "ssh_from": ("203.0.113.7/32", "2001:db8::/64", "anywhere"),
        "lifetime": 5_400.0,
        "idle": 40.0,
        "budget": 12.0,
    }
    assert vars(found) == {**given, **read}
    assert spec(workers=1, efs="new").fleet.efs == "new"


@pytest.mark.parametrize("key", ["lifetime", "idle"])
def test_machines_that_never_end_are_asked_for_by_a_word(key: str) -> None:
    assert getattr(spec(workers=1, **{key: "never"}).fleet, key) == 0.0


@pytest.mark.parametrize(
    "kind", ["m7i.large", "u7i-12tb.224xlarge", "mac2-m2pro.metal", "g6e.xlarge", "m7i.metal-24xl"]
)
def test_every_type_has_a_name_that_is_taken(kind: str) -> None:
    assert jobs(instance_type=kind)["ps"].instance_type == kind


@pytest.mark.parametrize("ami", ["ami-0123456789abcdef0", "ssm:/aws/service/a-b_c/x.y/image_id", "deep-learning"])
def test_an_image_may_be_named_in_every_way(ami: str) -> None:
    assert jobs(ami=ami)["ps"].ami == ami


TYPE = 'It takes an instance type, such as "m7i.large".'
AMI = 'It takes "ami-…", "ssm:/PARAMETER" or "deep-learning".'
MACHINES = 'It takes "per task", "packed" or a number, such as "2".'
VOLUMES = "It takes one of: gp3, gp2, io2, io1, st1, sc1, standard."
REGION = 'It takes a region, such as "us-west-2".'
EFS = 'It takes the id of a file system, "fs-…", or "new".'
CIDR = 'Each takes a CIDR, such as "203.0.113.7/32".'
WORLD = 'Give your own address; "anywhere" if you mean it.'
EBS = 'Each takes SIZE:TARGET or VOLUME:TARGET, such as "200GiB:/scratch" or "vol-0123456789abcdef0:/data".'
NO_FOLDER = "which names no folder of the containers"
NO_SOURCE = "which names neither a volume nor a size up to 64 TiB"
ONCE = "Name each volume and each folder once."
DURATION = 'It takes seconds, or a duration such as "90s", "10m", "1h30m" or "0", up to a year.'
AT_ONCE = 'is 0: the machines would end at once. Give "never" if they shall not end by it.'
MOST = "It takes a whole number from 1 to 1000."


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"instance_type": "large"}, f"instance_type: is 'large'. {TYPE}"),
    ({"instance_type": "M7i.large"}, f"instance_type: is 'M7i.large'. {TYPE}"),
    ({"instance_type": 7}, "instance_type: is 7, of type int. It takes a text."),
    ({"jobs": {"worker": {"instance_type": "a b"}}}, f"jobs: worker: instance_type: is 'a b'. {TYPE}"),
    ({"ami": "ubuntu"}, f"ami: is 'ubuntu'. {AMI}"),
    ({"ami": "ssm:aws"}, f"ami: is 'ssm:aws'. {AMI}"),
    ({"jobs": {"ps": {"ami": "ami-xyz"}}}, f"jobs: ps: ami: is 'ami-xyz'. {AMI}"),
    ({"spot": "yes"}, "spot: is 'yes', of type str. It takes True or False."),
    ({"machines": "0"}, f"machines: is '0'. {MACHINES}"),
    ({"machines": "1001"}, f"machines: is '1001'. {MACHINES}"),
    ({"machines": "few"}, f"machines: is 'few'. {MACHINES}"),
    ({"machines": 2}, "machines: is 2, of type int. It takes a text."),
    ({"jobs": {"ps": {"machines": "-1"}}}, f"jobs: ps: machines: is '-1'. {MACHINES}"),
    ({"root_volume_size": "large"}, "root_volume_size: 'large' is no size."),
    ({"root_volume_type": "ssd"}, f"root_volume_type: is 'ssd'. {VOLUMES}"),
    ({"jobs": {"ps": {"root_volume_type": "gp1"}}}, f"jobs: ps: root_volume_type: is 'gp1'. {VOLUMES}"),
    ({"jobs": {"ps": {"region": "us-west-2"}}}, "jobs: ps: its settings: 'region' is unknown."),
    ({"region": "oregon"}, f"region: is 'oregon'. {REGION}"),
    ({"vpc_id": "mine"}, "vpc_id: is 'mine'. It takes the id of a VPC, \"vpc-…\"."),
    ({"subnet_id": "vpc-0a"}, "subnet_id: is 'vpc-0a'. It takes the id of a subnet, \"subnet-…\"."),
    ({"ssh_user": "Me; reboot"}, "ssh_user: is 'Me; reboot'. It takes the name of a user."),
    ({"efs": "yes"}, f"efs: is 'yes'. {EFS}"),
    ({"max_machines": 0}, f"max_machines: is 0. {MOST}"),
    ({"max_machines": 1001}, f"max_machines: is 1001. {MOST}"),
    ({"lifetime": "long"}, f"lifetime: 'long' is no duration. {DURATION}"),
    ({"lifetime": "0"}, f"lifetime: {AT_ONCE}"),
    ({"idle": 0}, f"idle: {AT_ONCE}"),
    ({"idle": "Never"}, f"idle: 'Never' is no duration. {DURATION}"),
    ({"budget": 0}, "budget: is 0: no machine costs that little. Give USD, such as 25, or leave it out."),
    ({"budget": -1}, "budget: is -1. It takes a number from 0 to a million."),
    ({"budget": "$5"}, "budget: is '$5', of type str. It takes a number."),
    ({"access": "open"}, 'access: is \'open\'. It takes "public", "private" or "ssm".'),
    ({"keep_record": "no"}, "keep_record: is 'no', of type str. It takes True or False."),
    ({"tags": {"Name": "x"}}, "tags: Name is set by tfdeploy itself. Choose another name."),
    ({"tags": {"tfdeploy:life": "x"}}, "tags: tfdeploy:life is set by tfdeploy itself. Choose another name."),
    ({"tags": {"team": 1}}, "tags: team: is 1. It takes a text, with neither NUL nor half characters."),
    ({"ssh_from": "203.0.113.7/32"}, "ssh_from: is '203.0.113.7/32', of type str. It takes a list of texts."),
    ({"ssh_from": ["0.0.0.0/0"]}, f"ssh_from: has '0.0.0.0/0' in it: the whole world. {WORLD}"),
    ({"ssh_from": ["anywhere", "::/0"]}, f"ssh_from: has '::/0' in it: the whole world. {WORLD}"),
    (
        {"ssh_from": ["203.0.113.7/24"]},
        f"ssh_from: has '203.0.113.7/24' in it, which is none (203.0.113.7/24 has host bits set). {CIDR}",
    ),
    (
        {"ssh_from": ["home"]},
        f"ssh_from: has 'home' in it, which is none ('home' does not appear to be an IPv4 or IPv6 network). {CIDR}",
    ),
]


@pytest.mark.parametrize(("args", "said"), REFUSALS)
def test_it_is_refused(args: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as error:
        jobs(**args)
    assert str(error.value).startswith(f"mnist: {said}")


EBS_REFUSALS: list[tuple[dict[str, Any], str]] = [
    *(
        ({"ebs_volumes": [text]}, f"ebs_volumes: has {text!r} in it, {NO_FOLDER}. {EBS}")
        for text in ("200GiB", "200GiB:", "200GiB:scratch", "200GiB:/", "vol-0a1b2c3d:/a:ro", "1GiB:/a b")
    ),
    *(
        ({"ebs_volumes": [text]}, f"ebs_volumes: has {text!r} in it, {NO_SOURCE}. {EBS}")
        for text in ("large:/a", "0:/a", "65TiB:/a", "vol-xyz:/a", "/a:/b", ":/a")
    ),
    ({"ebs_volumes": ["1GiB:/a", "2GiB:/a/"]}, f"ebs_volumes: has /a twice. {ONCE}"),
    ({"ebs_volumes": ["vol-0a1b2c3d:/a"] * 2}, f"ebs_volumes: has /a twice. {ONCE}"),
    ({"ebs_volumes": ["vol-0a1b2c3d:/a", "vol-0a1b2c3d:/b"]}, f"ebs_volumes: has vol-0a1b2c3d twice. {ONCE}"),
    (
        {"ebs_volumes": ["1GiB:/a"], "jobs": {"ps": {"ebs_volumes": ["2GiB:/a"]}}},
        f"jobs: ps: ebs_volumes: has /a twice. {ONCE}",
    ),
    (
        {"ebs_volumes": [f"1GiB:/{n}" for n in range(12)]},
        "ebs_volumes: has 12 volumes. A machine takes 11.",
    ),
]


@pytest.mark.parametrize(("args", "said"), EBS_REFUSALS)
def test_what_is_no_volume_or_is_there_twice_is_refused(args: dict[str, Any], said: str) -> None:
    test_it_is_refused(args, said)


@pytest.mark.parametrize(
    ("texts", "cidrs"),
    [
        (["203.0.113.7"], ("203.0.113.7/32",)),
        (["10.0.0.0/255.0.0.0"], ("10.0.0.0/8",)),
        (["2001:0db8:0::/64"], ("2001:db8::/64",)),
        (["203.0.113.7", "anywhere", "203.0.113.7/32"], ("203.0.113.7/32", "anywhere")),
    ],
)
def test_a_cidr_is_written_as_ec2_takes_it_and_once(texts: list[str], cidrs: tuple[str, ...]) -> None:
    assert spec(workers=1, ssh_from=texts).fleet.ssh_from == cidrs
