"""The argument group `ec2`. Pure.

The names are AWS's: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..units import size as bytes_of
from .arg_reader import ArgReader
from .argument import (
    ADDED,
    BY_DEFAULT,
    TEXTS,
    Choices,
    choice,
    duration,
    flag,
    integer,
    mapping,
    own,
    size,
    text,
    texts,
)

DEEP_LEARNING = "deep-learning"
ANYWHERE = "anywhere"
NEW = "new"
PER_TASK, PACKED = "per-task", "packed"
LAYOUTS = Choices("MachineLayout", "How tasks share EC2 instances.", (PER_TASK, PACKED))
NEVER = "never"
PUBLIC, PRIVATE, SSM = "public", "private", "ssm"
CONNECTIVITIES = Choices("Connectivity", "How tfdeploy connects to EC2 instances.", (PUBLIC, PRIVATE, SSM))

MOST_VOLUMES = 11
"""They are named /dev/sdf to /dev/sdp.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html"""

_GIB = 1 << 30
_LARGEST_VOLUME = 64 * 1024
_MOST_MACHINES = 1_000
_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_AMI = re.compile(rf"ami-[0-9a-f]+|ssm:/[A-Za-z0-9_./-]+|{DEEP_LEARNING}")
_EFS = re.compile(rf"fs-[0-9a-f]+|{NEW}")
_USER = re.compile(r"[a-z_][a-z0-9_-]*")
_VOLUME = re.compile(r"vol-[0-9a-f]{8,17}")
_TARGET = re.compile(r"/[^:,\s]+")
_VPC, _SUBNET = re.compile(r"vpc-[0-9a-f]+"), re.compile(r"subnet-[0-9a-f]+")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
_VOLUME_TYPES = ("gp3", "gp2", "io2", "io1", "st1", "sc1", "standard")
_RESERVED_TAGS = "tfdeploy:"


@dataclass(frozen=True)
class EbsVolume:
    """A disk of a machine beside its root volume."""

    target: str
    """The folder in the job's containers."""
    size: int = 0
    """GiB of a new disk, which is deleted with its machine; 0 for an existing volume."""
    volume_id: str = ""

    @property
    def source(self) -> str:
        """The argument without the target: `200GiB`, `vol-…`."""
        return self.volume_id or f"{self.size}GiB"


def on_demand(common: "InstanceSpec") -> "InstanceSpec":
    """The same without spot instances."""
    return replace(common, spot=False)


def _layout(ec2: ArgReader, key: str, common: str) -> str:
    """A count implies the layout `packed`."""
    layout = ec2.choice(key, LAYOUTS.values, "")
    return PACKED if ec2.has("machine_count") else layout or common


def _count(ec2: ArgReader, key: str, common: int) -> int:
    """A layout alone replaces the cluster's count."""
    layout = ec2.string("machine_layout")
    if not ec2.has(key):
        return 0 if layout else common
    if layout == PER_TASK:
        wrong = f'cannot be combined with machine_layout="{PER_TASK}"'
        raise ec2.error(key, wrong, f'Remove one, or use machine_layout="{PACKED}".')
    return ec2.integer(key, 0, 1, _MOST_MACHINES)


def _volumes(ec2: ArgReader, key: str, common: tuple[EbsVolume, ...]) -> tuple[EbsVolume, ...]:
    volumes = (*common, *(_volume(ec2, written) for written in ec2.strings(key)))
    targets = [volume.target.rstrip("/") for volume in volumes]
    ids = [volume.volume_id for volume in volumes if volume.volume_id]
    for names in (targets, ids):
        if duplicate := next((name for name in names if names.count(name) > 1), ""):
            raise ec2.error(key, f"{duplicate} is used twice", "Use each volume and each folder once.")
    if len(volumes) > MOST_VOLUMES:
        raise ec2.error(key, f"there are {len(volumes)} volumes", f"Use at most {MOST_VOLUMES}.")
    return volumes


def _volume(ec2: ArgReader, written: str) -> EbsVolume:
    source, _, target = written.partition(":")
    remedy = 'Use SIZE:TARGET or VOLUME:TARGET, such as "200GiB:/scratch" or "vol-0123456789abcdef0:/data".'
    if not _TARGET.fullmatch(target) or not target.strip("/"):
        raise ec2.error("ebs_volumes", f"{written!r} does not end with an absolute folder", remedy)
    if _VOLUME.fullmatch(source):
        return EbsVolume(target, volume_id=source)
    try:
        gib = -(-bytes_of(source) // _GIB)
    except ValueError:
        gib = 0
    if not 1 <= gib <= _LARGEST_VOLUME:
        wrong = f"{written!r} does not begin with the id of a volume or a size of at most 64 TiB"
        raise ec2.error("ebs_volumes", wrong, remedy)
    return EbsVolume(target, gib)


def _duration_or_never(ec2: ArgReader, key: str, default: float) -> float:
    """Seconds; 0 only for the string `never`, because with a duration of 0 a machine would terminate at once."""
    if ec2.args.get(key) == NEVER:
        return 0.0
    duration = ec2.duration(key, default)
    if not duration:
        raise ec2.error(key, "with 0 the machines would terminate at once", f'Use "{NEVER}" to disable it.')
    return duration


def _budget(ec2: ArgReader, key: str, default: float) -> float:
    budget = ec2.number(key, default)
    if not budget and ec2.has(key):
        raise ec2.error(key, "0 is not valid", "Use an amount in USD, such as 25, or remove it.")
    return budget


def _cidr(ec2: ArgReader, key: str, written: str) -> str:
    """A CIDR in EC2's notation; a single address is a CIDR too."""
    if written == ANYWHERE:
        return written
    try:
        network = ipaddress.ip_network(written)
    except ValueError as error:
        remedy = 'Use a CIDR, such as "203.0.113.7/32".'
        raise ec2.error(key, f"{written!r} is not a valid CIDR ({error})", remedy) from None
    if network.prefixlen == 0:
        wrong = f"{written!r} allows every address"
        raise ec2.error(key, wrong, f'Use your own address, or "{ANYWHERE}" to confirm this.')
    return str(network)


def _tags(ec2: ArgReader, key: str) -> Mapping[str, str]:
    tags = ec2.mapping(key)
    for name in tags:
        if name.startswith(_RESERVED_TAGS) or name == "Name":
            raise ec2.error(f"{key}.{name}", "the tag is set by tfdeploy", "Use another name.")
    return tags


@dataclass(frozen=True)
class InstanceSpec:
    """The EC2 instances of one job."""

    instance_type: str = text(pattern=_TYPE, form='an instance type, such as "m7i.large"')
    """The instance type, such as "m7i.large", or "g6.xlarge" for jobs with GPUs. Required, here or in each job."""
    ami: str = text(pattern=_AMI, form=f'"ami-…", "ssm:/PARAMETER" or "{DEEP_LEARNING}"')
    """The machine image: "ami-…"; "ssm:/PARAMETER", a public parameter that contains one; "deep-learning" for Amazon's Deep
    Learning AMI. By default the ECS-optimized Amazon Linux 2023 for the processor of the instance type, with NVIDIA's driver
    if the type has GPUs. It is looked up once; existing machines are not replaced when AWS publishes a newer one."""
    spot: bool = flag(of_job=f"{BY_DEFAULT}; ps does not use them by default")
    """Whether spot instances are used, which are cheaper and can be interrupted. A ps uses them only if its job's group `ec2` sets it;
    the Swarm manager never does."""
    machine_layout: str = own("str", _layout, PER_TASK, choices=LAYOUTS)
    """How tasks share machines. "per-task": each task has a machine. "packed": as few machines as hold what the tasks reserve."""
    machine_count: int = own("int", _count, 0, has_default=False)
    """The number of machines, which the tasks share. By default it follows from `machine_layout`."""
    root_volume_size: int = size(100, "GiB", lambda ec2, key, common: -(-ec2.bytes(key) // _GIB) or common)
    """The size of the root volume. It is always encrypted."""
    root_volume_type: str = own("str", lambda ec2, key, common: ec2.choice(key, _VOLUME_TYPES, common), "gp3")
    """The type of the root volume."""
    ebs_volumes: tuple[EbsVolume, ...] = own(TEXTS, _volumes, (), of_job=ADDED)
    """Further volumes of each machine: "SIZE:TARGET", such as "200GiB:/scratch", for a new one that is deleted with its machine;
    "vol-…:TARGET" for an existing one, which is retained and can have only one machine. TARGET is the folder in the containers."""


@dataclass(frozen=True)
class Ec2Spec(InstanceSpec):
    """EC2 instances and what they need, on the backend "ec2"."""

    region: str = text(pattern=_REGION, form='a region, such as "us-west-2"')
    """The region, such as "us-west-2"; by default that of the AWS provider: `aws:region`, else the AWS CLI's default."""
    max_machines: int = integer(20, 1, _MOST_MACHINES)
    """The highest number of machines; a plan with more is refused."""
    max_lifetime: float = duration(72 * 3600.0, _duration_or_never)
    """The time after which a machine terminates itself in any case; "never" disables it."""
    idle_timeout: float = duration(900.0, _duration_or_never)
    """The time without tasks after which a machine terminates itself; "never" disables it."""
    budget: float = own("float", _budget, 0.0, has_default=False)
    """The highest cost of the cluster's machines, in USD. A plan is refused if its machines may cost more until the end of
    `max_lifetime`, or if a price is unknown. The run is stopped in time, so that the machines of all runs together have cost no
    more when they have terminated themselves (`idle_timeout`). The start of the first machines is not counted. By default there is no
    limit."""
    vpc_id: str = text(pattern=_VPC, form='the id of a VPC, "vpc-…"')
    """The VPC; by default the region's default VPC."""
    subnet_id: str = text(pattern=_SUBNET, form='the id of a subnet, "subnet-…"')
    """The subnet; by default one of the VPC in a zone that offers all instance types."""
    ssh_public_key: str = text()
    """The file with your SSH public key, which the machines accept beside the cluster's own key; by default
    ~/.ssh/id_ed25519.pub or id_rsa.pub. Your private key is not read."""
    ssh_user: str = text("ec2-user", _USER, "the name of a user")
    """The user of the machine image."""
    ssh_cidrs: tuple[str, ...] = texts(_cidr)
    """The addresses that may connect by SSH, as CIDRs, such as "203.0.113.7/32"; "anywhere" for all. Required, except with
    the connectivity "ssm", which does not use it."""
    connectivity: str = choice(CONNECTIVITIES, PUBLIC)
    """How tfdeploy connects to the machines. "public": SSH to a public address. "private": SSH to an address in the VPC,
    through your VPN or jump host. "ssm": SSH through AWS Systems Manager, without public addresses or open ports. A change
    replaces the machines."""
    placement_group: str = text()
    """The name of an existing placement group for the machines."""
    instance_profile: str = text()
    """An instance profile instead of the roles that tfdeploy creates. With "ssm" its role needs AmazonSSMManagedInstanceCore."""
    efs: str = text(pattern=_EFS, form=f'the id of a file system, "fs-…", or "{NEW}"')
    """A file system that all machines share, for `train_dir`: "new" for one of the cluster, or the id of an existing one, "fs-…"."""
    retain_record: bool = flag(True)
    """Whether `destroy` retains the record of runs in S3."""
    tags: Mapping[str, str] = mapping(_tags)
    """Additional tags of all AWS resources."""
