"""The argument group `ec2`. Pure.

The names are AWS's: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from ..units import size
from .arg_reader import ArgReader

DEEP_LEARNING = "deep-learning"
ANYWHERE = "anywhere"
NEW = "new"
PER_TASK, PACKED = "per-task", "packed"
LAYOUTS = (PER_TASK, PACKED)
NEVER = "never"
PUBLIC, PRIVATE, SSM = "public", "private", "ssm"
CONNECTIVITIES = (PUBLIC, PRIVATE, SSM)

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


@dataclass(frozen=True)
class InstanceSpec:
    """The EC2 instances of one job."""

    instance_type: str = ""
    ami: str = ""
    """Empty for the default, `deep-learning`, `ssm:/PARAMETER` or `ami-…`."""
    spot: bool = False
    machine_layout: str = PER_TASK
    machine_count: int = 0
    """How many machines; 0 for as many as `machine_layout` results in."""
    root_volume_size: int = field(default=100, metadata={"unit": "GiB"})
    """GiB: room for the Deep Learning AMI (at least 75) and for TensorFlow's image with CUDA."""
    root_volume_type: str = "gp3"
    ebs_volumes: tuple[EbsVolume, ...] = ()


@dataclass(frozen=True)
class Ec2Spec:
    """What all EC2 instances of a cluster share."""

    region: str = ""
    vpc_id: str = ""
    subnet_id: str = ""
    ssh_public_key: str = ""
    """The file with the public key; the private key is beside it, or in an agent."""
    ssh_user: str = "ec2-user"
    ssh_cidrs: tuple[str, ...] = ()
    placement_group: str = ""
    instance_profile: str = ""
    efs: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    max_machines: int = 20
    max_lifetime: float = field(default=72 * 3600.0, metadata={"unit": "s"})
    """Seconds after which a machine terminates itself; 0 for never."""
    idle_timeout: float = field(default=900.0, metadata={"unit": "s"})
    """Seconds without a task after which a machine terminates itself; 0 for never."""
    budget: float = 0.0
    """The highest cost of a plan in USD; 0 for no limit."""
    connectivity: str = PUBLIC
    retain_record: bool = True
    """Whether `destroy` retains the record in S3."""


JOB_KEYS = tuple(field.name for field in fields(InstanceSpec))
KEYS = (*JOB_KEYS, *(field.name for field in fields(Ec2Spec)))


def on_demand(common: InstanceSpec) -> InstanceSpec:
    """The same without spot instances."""
    return replace(common, spot=False)


def instance_spec(ec2: ArgReader, common: InstanceSpec) -> InstanceSpec:
    """A group `ec2` over the cluster's one, `common`. Volumes are added to the cluster's.

    Raises:
        SpecError: an argument is not valid.
    """
    layout, count = _machine_layout(ec2, common)
    return InstanceSpec(
        instance_type=ec2.matching("instance_type", _TYPE, 'an instance type, such as "m7i.large"')
        or common.instance_type,
        ami=ec2.matching("ami", _AMI, f'"ami-…", "ssm:/PARAMETER" or "{DEEP_LEARNING}"') or common.ami,
        spot=ec2.boolean("spot", common.spot),
        machine_layout=layout,
        machine_count=count,
        root_volume_size=-(-ec2.bytes("root_volume_size") // _GIB) or common.root_volume_size,
        root_volume_type=ec2.choice("root_volume_type", _VOLUME_TYPES, common.root_volume_type),
        ebs_volumes=_volumes(ec2, common.ebs_volumes),
    )


def ec2_spec(ec2: ArgReader) -> Ec2Spec:
    """The cluster's group `ec2`, without what jobs may have themselves.

    Raises:
        SpecError: an argument is not valid.
    """
    tags = ec2.mapping("tags")
    for name in tags:
        if name.startswith(_RESERVED_TAGS) or name == "Name":
            raise ec2.error(f"tags.{name}", "the tag is set by tfdeploy", "Use another name.")
    return Ec2Spec(
        region=ec2.matching("region", _REGION, 'a region, such as "us-west-2"'),
        vpc_id=ec2.matching("vpc_id", _VPC, 'the id of a VPC, "vpc-…"'),
        subnet_id=ec2.matching("subnet_id", _SUBNET, 'the id of a subnet, "subnet-…"'),
        ssh_public_key=ec2.string("ssh_public_key"),
        ssh_user=ec2.matching("ssh_user", _USER, "the name of a user") or Ec2Spec.ssh_user,
        ssh_cidrs=_cidrs(ec2),
        placement_group=ec2.string("placement_group"),
        instance_profile=ec2.string("instance_profile"),
        efs=ec2.matching("efs", _EFS, f'the id of a file system, "fs-…", or "{NEW}"'),
        tags=tags,
        max_machines=ec2.integer("max_machines", Ec2Spec.max_machines, 1, _MOST_MACHINES),
        max_lifetime=_duration_or_never(ec2, "max_lifetime", Ec2Spec.max_lifetime),
        idle_timeout=_duration_or_never(ec2, "idle_timeout", Ec2Spec.idle_timeout),
        budget=_budget(ec2),
        connectivity=ec2.choice("connectivity", CONNECTIVITIES, PUBLIC),
        retain_record=ec2.boolean("retain_record", Ec2Spec.retain_record),
    )


def _machine_layout(ec2: ArgReader, common: InstanceSpec) -> tuple[str, int]:
    """Layout and count. A count implies the layout `packed`; a layout alone replaces the cluster's count."""
    count = ec2.integer("machine_count", 0, 1, _MOST_MACHINES)
    layout = ec2.choice("machine_layout", LAYOUTS, "")
    if count and layout == PER_TASK:
        wrong = f'cannot be combined with machine_layout="{PER_TASK}"'
        raise ec2.error("machine_count", wrong, f'Remove one, or use machine_layout="{PACKED}".')
    if count:
        return PACKED, count
    return (layout, 0) if layout else (common.machine_layout, common.machine_count)


def _volumes(ec2: ArgReader, common: tuple[EbsVolume, ...]) -> tuple[EbsVolume, ...]:
    volumes = (*common, *(_volume(ec2, text) for text in ec2.strings("ebs_volumes")))
    targets = [volume.target.rstrip("/") for volume in volumes]
    ids = [volume.volume_id for volume in volumes if volume.volume_id]
    for names in (targets, ids):
        if duplicate := next((name for name in names if names.count(name) > 1), ""):
            raise ec2.error("ebs_volumes", f"{duplicate} is used twice", "Use each volume and each folder once.")
    if len(volumes) > MOST_VOLUMES:
        raise ec2.error("ebs_volumes", f"there are {len(volumes)} volumes", f"Use at most {MOST_VOLUMES}.")
    return volumes


def _volume(ec2: ArgReader, text: str) -> EbsVolume:
    source, _, target = text.partition(":")
    remedy = 'Use SIZE:TARGET or VOLUME:TARGET, such as "200GiB:/scratch" or "vol-0123456789abcdef0:/data".'
    if not _TARGET.fullmatch(target) or not target.strip("/"):
        raise ec2.error("ebs_volumes", f"{text!r} does not end with an absolute folder", remedy)
    if _VOLUME.fullmatch(source):
        return EbsVolume(target, volume_id=source)
    try:
        gib = -(-size(source) // _GIB)
    except ValueError:
        gib = 0
    if not 1 <= gib <= _LARGEST_VOLUME:
        wrong = f"{text!r} does not begin with the id of a volume or a size of at most 64 TiB"
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


def _budget(ec2: ArgReader) -> float:
    budget = ec2.number("budget", Ec2Spec.budget)
    if not budget and ec2.has("budget"):
        raise ec2.error("budget", "0 is not valid", "Use an amount in USD, such as 25, or remove it.")
    return budget


def _cidrs(ec2: ArgReader) -> tuple[str, ...]:
    """The CIDRs in EC2's notation, without duplicates; a single address is a CIDR too."""
    cidrs: list[str] = []
    for text in ec2.strings("ssh_cidrs"):
        if text == ANYWHERE:
            cidrs.append(text)
            continue
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            remedy = 'Use a CIDR, such as "203.0.113.7/32".'
            raise ec2.error("ssh_cidrs", f"{text!r} is not a valid CIDR ({error})", remedy) from None
        if network.prefixlen == 0:
            wrong = f"{text!r} allows every address"
            raise ec2.error("ssh_cidrs", wrong, f'Use your own address, or "{ANYWHERE}" to confirm this.')
        cidrs.append(str(network))
    return tuple(dict.fromkeys(cidrs))
