"""What AWS reports about types, images, networks and instances, and what a plan makes of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network

from ....plan.scheduler import Machine
from ....spec.ec2 import DEEP_LEARNING, EbsVolume, InstanceSpec

LIVE = ("pending", "running", "stopping", "stopped")
"""States of an instance that exists.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html"""

PREFIX = "tfdeploy:"
CLUSTER_ID, OWNER = f"{PREFIX}cluster-id", f"{PREFIX}owner"
"""The tags that identify a cluster, and who created it."""

MACHINE, ROLE, IMAGE, FILES, DISKS, ACCESS = (
    f"{PREFIX}{key}" for key in ("machine", "role", "image", "files", "disks", "access")
)
"""The tags that only instances have, beside those of all resources of a cluster."""

MASTER, WORKER = "Master", "Worker"
"""The values of the tag ROLE."""

X86, ARM = "x86_64", "arm64"

POOL = "pool"
"""The label of a machine that names its pool: the tasks of a job run on the machines of one pool."""

_SYSTEM_MEMORY = 0.08
"""The part of a machine's memory that tasks cannot have: Linux shows about 95 % of what AWS names, and needs some itself."""

MOST_BOOT_FAILURES = 3
"""A machine that failed to boot so many times in a row is not created again."""


@dataclass(frozen=True)
class InstanceType:
    """A type of machine."""

    name: str
    cpus: int
    memory: int
    """Bytes."""
    gpus: int = 0
    architecture: str = X86
    spot: bool = True
    """True where it is available as a spot instance."""
    zones: frozenset[str] = frozenset()
    """The zones of the region that offer it."""

    @property
    def usable_memory(self) -> int:
        """The memory of a machine that tasks can have, in bytes."""
        return int(self.memory * (1 - _SYSTEM_MEMORY))

    def __str__(self) -> str:
        gpus = f", {self.gpus} gpus" if self.gpus else ""
        return f"{self.name} ({self.cpus} cpus, {self.memory >> 30} GiB{gpus})"


@dataclass(frozen=True)
class Subnet:
    """A subnet in which machines can be created."""

    subnet_id: str
    vpc_id: str
    zone: str
    vpc_cidrs: tuple[str, ...]


@dataclass(frozen=True)
class MachineState:
    """What is observed: an existing instance of a cluster, with what its tags record of its creation."""

    machine: str
    instance_id: str
    state: str
    instance_type: str
    image_id: str
    is_manager: bool
    subnet_id: str = ""
    public_ip: str = ""
    private_ip: str = ""
    launched: float = 0.0
    spot: bool = False
    image: str = ""
    files: str = ""
    disks: str = ""
    """Its image, its shared file system and its further disks, as they were requested."""
    access: str = ""
    """How it is reached; empty for `public`."""


@dataclass(frozen=True)
class MachineSpec:
    """What is asked for: a machine that the cluster needs."""

    machine: str
    pool: str
    jobs: tuple[str, ...]
    """The jobs that may have tasks on it: those of its pool, and TensorBoard on the manager or where it is placed."""
    instance_type: InstanceType
    spec: InstanceSpec
    is_manager: bool = False

    @property
    def spot(self) -> bool:
        """True for a spot instance. The manager of the Swarm never is one."""
        return self.spec.spot and not self.is_manager

    @property
    def image(self) -> str:
        """The requested image: an id, or the path of a parameter."""
        return requested_image(self.spec.ami, self.instance_type)

    @property
    def volumes(self) -> tuple[EbsVolume, ...]:
        """The requested further disks."""
        return self.spec.ebs_volumes


@dataclass(frozen=True, kw_only=True)
class Ec2Machine(Machine):
    """A machine in a plan: what to create on EC2, and what exists already."""

    request: MachineSpec
    subnet: Subnet
    image_id: str
    instance: MachineState | None
    """The existing instance."""
    changes: tuple[str, ...]
    """Why the existing instance must be replaced; empty when it can stay, or when there is none."""
    failed: str
    """A sentence about its last failed boot; empty when there is none."""

    @property
    def instance_id(self) -> str:
        """The existing instance; empty for none."""
        return self.instance.instance_id if self.instance else ""

    @property
    def state(self) -> str:
        """The state of that instance, as EC2 reports it."""
        return self.instance.state if self.instance else ""

    @property
    def disks(self) -> tuple[str, ...]:
        """The further disks as text, such as `200GiB` and `vol-…`."""
        return tuple(volume.source for volume in self.request.volumes)

    @property
    def boot_kind(self) -> str:
        """What decides whether it boots: another machine of the same kind probably fails too."""
        return f"{self.kind}, {self.image_id}, {self.subnet.subnet_id}"

    @property
    def can_stay(self) -> bool:
        """True when the instance exists and needs no replacement."""
        return self.instance is not None and not self.changes


def ec2_machine(machine: Machine) -> Ec2Machine:
    """The machine of a plan as one of EC2; a TypeError for one that was planned for another backend."""
    if not isinstance(machine, Ec2Machine):
        raise TypeError(f"{machine.name} was not planned for EC2")
    return machine


@dataclass(frozen=True)
class BootFailure:
    """The last failed boot of a machine that has not become ready since."""

    instance_id: str
    kind: str
    reason: str
    console: str
    """The last lines of its console."""
    times: int = 1
    """How often in a row a machine of this kind failed."""

    @property
    def summary(self) -> str:
        """A sentence for the preview."""
        return f"its boot failed ({self.times} of {MOST_BOOT_FAILURES})"

    def following(self, previous: "BootFailure | None") -> "BootFailure":
        """This failure, counted in a row with the previous one. Two observations of one instance count once."""
        if previous is None or previous.kind != self.kind:
            return self
        return replace(self, times=previous.times + (previous.instance_id != self.instance_id))


@dataclass(frozen=True)
class Ec2Inventory:
    """What AWS reports, as far as a plan needs it."""

    region: str
    subnet: Subnet
    types: Mapping[str, InstanceType]
    images: Mapping[str, str]
    """The image as requested (`requested_image`) to the id that it has now."""
    instances: Mapping[str, MachineState]
    """Machine to its newest existing instance."""
    failures: Mapping[str, BootFailure] = field(default_factory=dict)
    """Machine to its last failed boot, where it has not become ready since."""


_ECS = "/aws/service/ecs/optimized-ami/amazon-linux-2023{flavour}/recommended/image_id"
"""https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html"""

_DLAMI = "/aws/service/deeplearning/ami/{architecture}/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
"""https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html"""

_PARAMETER = "ssm:"


def requested_image(ami: str, instance_type: InstanceType) -> str:
    """The image for `ami` and a type: an id, or the path of the public parameter that has the id, which begins with a slash."""
    if ami.startswith(_PARAMETER):
        return ami.removeprefix(_PARAMETER)
    if ami == DEEP_LEARNING:
        return _DLAMI.format(architecture=instance_type.architecture)
    if ami:
        return ami
    flavour = "/gpu" if instance_type.gpus else "/arm64" if instance_type.architecture == ARM else ""
    return _ECS.format(flavour=flavour)


OVERLAY_MASK = 24
"""The size of an overlay network: 253 tasks."""

# Docker's defaults (10.0.0.0/8 for overlays, 172.17.0.0/12 for bridges) are the usual addresses of VPCs:
# https://docs.docker.com/engine/swarm/networking/#configure-the-default-address-pools.
_OVERLAYS = ("10.200.0.0/14", "172.24.0.0/14", "192.168.128.0/17", "10.64.0.0/14", "100.96.0.0/14")
_BRIDGES = ("172.20.0.0/16", "10.199.0.0/16", "192.168.0.0/17", "10.63.0.0/16", "100.95.0.0/16")


def overlay_pool(vpc_cidrs: Sequence[str], subnet: str = "") -> str:
    """A pool for overlay networks that overlaps neither with the VPC nor with `subnet`, the requested network."""
    return _free(_OVERLAYS, [*vpc_cidrs, *([subnet] if subnet else [])])


def bridge_pool(vpc_cidrs: Sequence[str], subnet: str = "") -> str:
    """A pool for the bridges of each machine that overlaps neither with the VPC nor with `subnet`."""
    return _free(_BRIDGES, [*vpc_cidrs, *([subnet] if subnet else [])])


def _free(candidates: Sequence[str], taken: Sequence[str]) -> str:
    networks = [IPv4Network(cidr) for cidr in taken if ":" not in cidr]
    return next(
        (pool for pool in candidates if not any(IPv4Network(pool).overlaps(network) for network in networks)),
        candidates[-1],
    )
