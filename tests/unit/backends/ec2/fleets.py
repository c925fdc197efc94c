"""What the tests of the ec2 backend make their cases from: types, subnets, instances, specs, and plans on machines."""

from dataclasses import replace
from typing import Any

from tests.clusters import ID, cluster_ref
from tests.unit import cases
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.backends.ec2.machine import machines
from tfdeploy.backends.ec2.machine.model import ARM, Ec2Inventory, InstanceType, MachineState, Subnet
from tfdeploy.plan.plan import Plan, make_plan
from tfdeploy.spec.cluster import ClusterSpec

GIB = 1 << 30
ZONES = frozenset({"us-west-2a", "us-west-2b"})
SMALL = InstanceType("m7i.large", 2, 8 * GIB, zones=ZONES)
GPUS = InstanceType("g6.12xlarge", 48, 192 * GIB, 4, zones=ZONES)
GRAVITON = InstanceType("m7g.large", 2, 8 * GIB, architecture=ARM, zones=ZONES)
TYPES = {kind.name: kind for kind in (SMALL, GPUS, GRAVITON)}

SUBNET = Subnet("subnet-0a", "vpc-0a", "us-west-2a", ("172.31.0.0/16",))

CLUSTER = cluster_ref("ec2", f"ec2://us-west-2/mnist-{ID}", "project")

ECS = "/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id"
ECS_GPU = "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id"
IMAGES = {
    ECS: "ami-0c",
    ECS_GPU: "ami-0d",
    "/aws/service/ecs/optimized-ami/amazon-linux-2023/arm64/recommended/image_id": "ami-0e",
    "ami-0f": "ami-0f",
}


def spec(name: str = "mnist", **args: Any) -> ClusterSpec:
    ec2 = {"instance_type": SMALL.name, **args.get("ec2", {})}
    return cases.spec(name, **{"backend": "ec2", **args, "ec2": ec2})


def instance(machine: str, is_manager: bool = False, **changed: Any) -> MachineState:
    """A machine that runs as it was made."""
    about = (machine, f"i-{machine}", "running", SMALL.name, "ami-0c", is_manager)
    return replace(MachineState(*about, public_ip="198.51.100.7", image=ECS), **changed)


def facts(*there: MachineState) -> Ec2Inventory:
    """What EC2 says, while these machines are there."""
    return Ec2Inventory("us-west-2", SUBNET, TYPES, IMAGES, {one.machine: one for one in there})


def plan(*there: MachineState, run: RunState | None = None, **args: Any) -> Plan:
    """A plan on the machines that the cluster shall have, of which these are there."""
    asked = spec(**args)
    known = machines.plan_machines(asked, facts(*there))
    lost = machines.lost(known)
    return make_plan(
        asked, cases.inventory(asked, *known, train_dir="/tfdeploy/train", data_dir="", run=run, lost=lost)
    )


PAIR: dict[str, Any] = {"ps": 1, "workers": 1}
PS, WORKER = instance("mnist-ps-m0", is_manager=True), instance("mnist-worker-m0")
"""The machines of this pair."""
