"""What the tests of the ec2 backend make their cases from: types, subnets, instances, specs, and plans on machines."""

from dataclasses import replace
from typing import Any

from tests.unit import cases
from tfdeploy.backends.base import Cluster
from tfdeploy.backends.ec2 import fleet
from tfdeploy.ec2.facts import ARM, Facts, Instance, InstanceType, Subnet
from tfdeploy.plan import Given, Plan, make_plan
from tfdeploy.spec import ClusterSpec

GIB = 1 << 30
ZONES = frozenset({"us-west-2a", "us-west-2b"})
SMALL = InstanceType("m7i.large", 2, 8 * GIB, zones=ZONES)
GPUS = InstanceType("g6.12xlarge", 48, 192 * GIB, 4, zones=ZONES)
GRAVITON = InstanceType("m7g.large", 2, 8 * GIB, architecture=ARM, zones=ZONES)
TYPES = {kind.name: kind for kind in (SMALL, GPUS, GRAVITON)}

SUBNET = Subnet("subnet-0a", "vpc-0a", "us-west-2a", ("172.31.0.0/16",))

CLUSTER: Cluster = {
    "backend": "ec2",
    "project": "project",
    "stack": "dev",
    "name": "mnist",
    "home": "ec2://us-west-2/project/dev/mnist",
}

ECS = "/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id"
ECS_GPU = "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"
IMAGES = {
    ECS: "ami-0c",
    ECS_GPU: "ami-0d",
    "/aws/service/ecs/optimized-ami/amazon-linux-2023/arm64/recommended/image_id": "ami-0e",
    "ami-0f": "ami-0f",
}


def spec(name: str = "mnist", **args: Any) -> ClusterSpec:
    """A spec of a cluster on EC2."""
    return cases.spec(name, **{"backend": "ec2", "instance_type": SMALL.name, **args})


def instance(machine: str, manages: bool = False, **changed: Any) -> Instance:
    """A machine that runs as it was made."""
    about = (machine, f"i-{machine}", "running", SMALL.name, "ami-0c", "a1b2", manages)
    return replace(Instance(*about, public_ip="198.51.100.7", image=ECS), **changed)


def facts(*there: Instance) -> Facts:
    """What EC2 says, while these machines are there."""
    return Facts("us-west-2", SUBNET, TYPES, IMAGES, {one.machine: one for one in there})


def plan(*there: Instance, **args: Any) -> Plan:
    """A plan on the machines that the cluster shall have, of which these are there."""
    asked = spec(**args)
    return make_plan(asked, fleet.machines(CLUSTER, asked, facts(*there)), Given(train_dir="/tfdeploy/train"))
