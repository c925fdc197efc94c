"""What is asked of EC2 instances: the cluster's, a job's own, what all have in common, and what is refused."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.spec.cluster import ClusterSpec
from tfdeploy.spec.ec2 import EbsVolume, InstanceSpec


def ec2_spec(**args: Any) -> ClusterSpec:
    return spec(workers=1, backend="ec2", **args)


def jobs(**args: Any) -> dict[str, InstanceSpec]:
    return {job.name: job.ec2 for job in ec2_spec(ps=1, **args).jobs}


CLUSTERS: dict[str, Any] = {
    "instance_type": "m7i.large",
    "ami": "ami-0a1b",
    "spot": True,
    "machine_layout": "packed",
    "root_volume_size": "80GiB",
    "root_volume_type": "io2",
}
OWN: dict[str, Any] = {
    "instance_type": "g6.xlarge",
    "ami": "deep-learning",
    "spot": False,
    "machine_count": 2,
    "root_volume_size": "200GiB",
    "root_volume_type": "gp2",
}
SCRATCH, OWN_VOLUME = EbsVolume("/scratch", 200), EbsVolume("/data", 0, "vol-0123456789abcdef0")


def test_a_parameter_server_is_on_a_spot_instance_only_by_a_word_of_its_own() -> None:
    asked = ec2_spec(chief=True, evaluator=True, ps=1, ec2={"spot": True})
    spots = {"chief": True, "ps": False, "worker": True, "evaluator": True}
    assert {job.name: job.ec2.spot for job in asked.jobs} == spots
    for own in (True, False):
        assert jobs(ec2={"spot": own}, jobs={"ps": {"ec2": {"spot": True}}})["ps"].spot
        assert not jobs(ec2={"spot": own}, jobs={"ps": {"cpus": 1}})["ps"].spot


def test_a_jobs_own_stands_over_the_clusters() -> None:
    found = jobs(ec2=CLUSTERS, jobs={"worker": {"ec2": OWN}})
    assert found["ps"] == InstanceSpec("m7i.large", "ami-0a1b", False, "packed", 0, 80, "io2")
    assert found["worker"] == InstanceSpec("g6.xlarge", "deep-learning", False, "packed", 2, 200, "gp2")


def test_a_layout_of_a_job_replaces_the_clusters_count_and_a_count_implies_the_layout_packed() -> None:
    made = jobs(ec2={"machine_count": 3}, jobs={"worker": {"ec2": {"machine_layout": "per-task"}}})
    assert (made["ps"].machine_layout, made["ps"].machine_count) == ("packed", 3)
    assert (made["worker"].machine_layout, made["worker"].machine_count) == ("per-task", 0)


@pytest.mark.parametrize(("size", "gib"), [("1GiB", 1), (1, 1), ("1.5GiB", 2), ("100GiB", 100), ("1TiB", 1024)])
def test_a_disk_is_of_whole_gib_and_never_less_than_asked_for(size: str | int, gib: int) -> None:
    assert jobs(ec2={"root_volume_size": size})["ps"].root_volume_size == gib


def test_a_jobs_volumes_are_added_to_the_clusters() -> None:
    found = jobs(
        ec2={"ebs_volumes": ["200GiB:/scratch"]},
        jobs={"worker": {"ec2": {"ebs_volumes": ["vol-0123456789abcdef0:/data"]}}},
    )
    assert (found["ps"].ebs_volumes, found["worker"].ebs_volumes) == ((SCRATCH,), (SCRATCH, OWN_VOLUME))
    assert [one.source for one in found["worker"].ebs_volumes] == ["200GiB", "vol-0123456789abcdef0"]


def test_what_all_have_in_common_is_as_asked() -> None:
    given: dict[str, Any] = {
        "region": "us-gov-west-1",
        "vpc_id": "vpc-0a1b",
        "subnet_id": "subnet-0a1b",
        "ssh_public_key": "~/.ssh/cluster.pub",
        "ssh_user": "ubuntu",
        "ssh_cidrs": ["203.0.113.7/32", "2001:db8::/64", "anywhere"],
        "placement_group": "near",
        "instance_profile": "pulls",
        "efs": "fs-0a1b",
        "tags": {"team": "vision"},
        "max_machines": 3,
        "max_lifetime": "1h30m",
        "idle_timeout": 40,
        "budget": 12,
        "connectivity": "ssm",
        "retain_record": False,
    }
    found = ec2_spec(ec2=given).ec2
    read = {
        "ssh_cidrs": ("203.0.113.7/32", "2001:db8::/64", "anywhere"),
        "max_lifetime": 5_400.0,
        "idle_timeout": 40.0,
        "budget": 12.0,
    }
    assert vars(found) == {**vars(InstanceSpec()), **given, **read}
    assert ec2_spec(ec2={"efs": "new"}).ec2.efs == "new"


@pytest.mark.parametrize("key", ["max_lifetime", "idle_timeout"])
def test_machines_that_never_end_are_asked_for_by_a_word(key: str) -> None:
    assert getattr(ec2_spec(ec2={key: "never"}).ec2, key) == 0.0


@pytest.mark.parametrize(
    "kind", ["m7i.large", "u7i-12tb.224xlarge", "mac2-m2pro.metal", "g6e.xlarge", "m7i.metal-24xl"]
)
def test_every_type_has_a_name_that_is_taken(kind: str) -> None:
    assert jobs(ec2={"instance_type": kind})["ps"].instance_type == kind


NO_VOLUMES = (
    *("200GiB", "200GiB:scratch", "200GiB:/", "vol-0a1b2c3d:/a:ro", "1GiB:/a b"),
    *("large:/a", "0:/a", "65TiB:/a", "vol-xyz:/a"),
)

REFUSALS: list[dict[str, Any]] = [
    {"ec2": {"instance_type": "large"}},
    {"ec2": {"instance_type": 7}},
    {"jobs": {"worker": {"ec2": {"instance_type": "a b"}}}},
    {"ec2": {"ami": "ubuntu"}},
    {"ec2": {"ami": "ssm:aws"}},
    {"jobs": {"ps": {"ec2": {"ami": "ami-xyz"}}}},
    {"ec2": {"spot": "yes"}},
    {"ec2": {"machine_count": 0}},
    {"ec2": {"machine_layout": "few"}},
    {"ec2": {"machine_layout": "per-task", "machine_count": 2}},
    {"ec2": {"machine_layout": 2}},
    {"ec2": {"root_volume_size": "large"}},
    {"ec2": {"root_volume_type": "ssd"}},
    {"jobs": {"ps": {"ec2": {"region": "us-west-2"}}}},
    {"ec2": {"region": "oregon"}},
    {"ec2": {"vpc_id": "mine"}},
    {"ec2": {"subnet_id": "vpc-0a"}},
    {"ec2": {"ssh_user": "Me; reboot"}},
    {"ec2": {"efs": "yes"}},
    {"ec2": {"max_machines": 1001}},
    {"ec2": {"max_lifetime": "long"}},
    {"ec2": {"max_lifetime": "0"}},
    {"ec2": {"idle_timeout": 0}},
    {"ec2": {"budget": 0}},
    {"ec2": {"budget": "$5"}},
    {"ec2": {"connectivity": "open"}},
    {"ec2": {"retain_record": "no"}},
    {"ec2": {"tags": {"Name": "x"}}},
    {"ec2": {"tags": {"tfdeploy:machine": "x"}}},
    {"ec2": {"tags": {"team": 1}}},
    {"ec2": {"ssh_cidrs": "203.0.113.7/32"}},
    {"ec2": {"ssh_cidrs": ["0.0.0.0/0"]}},
    {"ec2": {"ssh_cidrs": ["anywhere", "::/0"]}},
    {"ec2": {"ssh_cidrs": ["203.0.113.7/24"]}},
    {"ec2": {"ssh_cidrs": ["home"]}},
    *({"ec2": {"ebs_volumes": [text]}} for text in NO_VOLUMES),
    {"ec2": {"ebs_volumes": ["1GiB:/a", "2GiB:/a/"]}},
    {"ec2": {"ebs_volumes": ["vol-0a1b2c3d:/a", "vol-0a1b2c3d:/b"]}},
    {"ec2": {"ebs_volumes": ["1GiB:/a"]}, "jobs": {"ps": {"ec2": {"ebs_volumes": ["2GiB:/a"]}}}},
    {"ec2": {"ebs_volumes": [f"1GiB:/{n}" for n in range(12)]}},
]
"""Arguments whose refusals are in snapshots/errors.txt."""


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
    assert ec2_spec(ec2={"ssh_cidrs": texts}).ec2.ssh_cidrs == cidrs
