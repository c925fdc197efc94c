"""What a cluster asks of its EC2 instances. Pure.

The words are AWS's: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .asked import Asked
from .quantities import size

KEYS = ("instance_type", "ami", "spot", "machines", "root_volume_size", "root_volume_type", "ebs_volumes")
"""What one job may have of its own."""

DEEP_LEARNING = "deep-learning"
ANYWHERE = "anywhere"
NEW = "new"
PER_TASK, PACKED = "per task", "packed"
NEVER = "never"
PUBLIC, PRIVATE, SSM = "public", "private", "ssm"

LIFETIME, IDLE = 72 * 3600.0, 900.0
"""Seconds until a machine ends itself: after its start, and after the last task has gone."""

MOST_MACHINES = 20
"""More are made only by an explicit word (`max_machines`)."""

MOST_VOLUMES = 11
"""They are named /dev/sdf to /dev/sdp.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html"""

_GIB = 1 << 30
_LARGEST_VOLUME = 64 * 1024
_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_AMI = re.compile(rf"ami-[0-9a-f]+|ssm:/[A-Za-z0-9_./-]+|{DEEP_LEARNING}")
_EFS = re.compile(rf"fs-[0-9a-f]+|{NEW}")
_USER = re.compile(r"[a-z_][a-z0-9_-]*")
_VOLUME = re.compile(r"vol-[0-9a-f]{8,17}")
_TARGET = re.compile(r"/[^:,\s]+")
_VPC, _SUBNET = re.compile(r"vpc-[0-9a-f]+"), re.compile(r"subnet-[0-9a-f]+")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
_VOLUME_TYPES = ("gp3", "gp2", "io2", "io1", "st1", "sc1", "standard")
_ACCESS = re.compile(rf"{PUBLIC}|{PRIVATE}|{SSM}")
_OURS = "tfdeploy:"


@dataclass(frozen=True)
class EbsVolume:
    """A disk of a machine's, beside the one that it boots from."""

    target: str
    """The folder of the job's containers."""
    size: int = 0
    """GiB of a new one that goes with its machine; 0 for the user's own."""
    volume_id: str = ""

    @property
    def source(self) -> str:
        """What it is asked for as, without the target: `200GiB`, `vol-…`."""
        return self.volume_id or f"{self.size}GiB"


@dataclass(frozen=True)
class InstanceSpec:
    """The instances that one job's tasks stand on."""

    instance_type: str = ""
    ami: str = ""
    """"" for the default, `deep-learning`, `ssm:/PARAMETER` or `ami-…`."""
    spot: bool = False
    machines: str = PER_TASK
    """`per task`, `packed`, or how many."""
    root_volume_size: int = 100
    """GiB: room for the Deep Learning AMI (75 at least) and for TensorFlow's image with CUDA."""
    root_volume_type: str = "gp3"
    ebs_volumes: tuple[EbsVolume, ...] = ()


@dataclass(frozen=True)
class FleetSpec:
    """What all machines of a cluster have in common."""

    region: str = ""
    vpc_id: str = ""
    subnet_id: str = ""
    ssh_key: str = ""
    """The file of the public key; the private one is beside it, or an agent has it."""
    ssh_user: str = "ec2-user"
    ssh_from: tuple[str, ...] = ()
    placement_group: str = ""
    instance_profile: str = ""
    efs: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    max_machines: int = MOST_MACHINES
    lifetime: float = LIFETIME
    """Seconds after which a machine ends itself; 0 for never."""
    idle: float = IDLE
    """Seconds without a task after which it does; 0 for never."""
    budget: float = 0.0
    """The most USD that a plan may cost; 0 for no bound."""
    access: str = PUBLIC
    """How the machines are reached: `public`, `private`, `ssm`."""
    keep_record: bool = True
    """The record's bucket outlives the cluster."""


def steady(common: InstanceSpec) -> InstanceSpec:
    """What the cluster asks for, for a job that loses more by an interruption than the price saves: on demand."""
    return replace(common, spot=False)


def instance_spec(ask: Asked, common: InstanceSpec) -> InstanceSpec:
    """What is asked for; `common` is the cluster's, over which one job's own goes. Its volumes are added to the cluster's.

    Raises:
        SpecError: an argument cannot be what the user wants.
    """
    kind = ask.text("root_volume_type") or common.root_volume_type
    if kind not in _VOLUME_TYPES:
        raise ask.refuse("root_volume_type", f"is {kind!r}", f"It takes one of: {', '.join(_VOLUME_TYPES)}.")
    return InstanceSpec(
        instance_type=ask.matching("instance_type", _TYPE, 'an instance type, such as "m7i.large"')
        or common.instance_type,
        ami=ask.matching("ami", _AMI, f'"ami-…", "ssm:/PARAMETER" or "{DEEP_LEARNING}"') or common.ami,
        spot=ask.flag("spot") if ask.args.get("spot") is not None else common.spot,
        machines=_machines(ask) or common.machines,
        root_volume_size=-(-ask.bytes("root_volume_size") // _GIB) or common.root_volume_size,
        root_volume_type=kind,
        ebs_volumes=_volumes(ask, common.ebs_volumes),
    )


def fleet_spec(ask: Asked) -> FleetSpec:
    """What is asked for.

    Raises:
        SpecError: an argument cannot be what the user wants.
    """
    tags = ask.mapping("tags")
    for name in tags:
        if name.startswith(_OURS) or name == "Name":
            raise ask.refuse("tags", f"{name} is set by tfdeploy itself", "Choose another name.")
    return FleetSpec(
        region=ask.matching("region", _REGION, 'a region, such as "us-west-2"'),
        vpc_id=ask.matching("vpc_id", _VPC, 'the id of a VPC, "vpc-…"'),
        subnet_id=ask.matching("subnet_id", _SUBNET, 'the id of a subnet, "subnet-…"'),
        ssh_key=ask.text("ssh_key"),
        ssh_user=ask.matching("ssh_user", _USER, "the name of a user") or "ec2-user",
        ssh_from=_cidrs(ask),
        placement_group=ask.text("placement_group"),
        instance_profile=ask.text("instance_profile"),
        efs=ask.matching("efs", _EFS, f'the id of a file system, "fs-…", or "{NEW}"'),
        tags=tags,
        max_machines=ask.whole("max_machines", MOST_MACHINES, 1, 1_000),
        lifetime=_ending(ask, "lifetime", LIFETIME),
        idle=_ending(ask, "idle", IDLE),
        budget=_budget(ask),
        access=ask.matching("access", _ACCESS, f'"{PUBLIC}", "{PRIVATE}" or "{SSM}"') or PUBLIC,
        keep_record=ask.flag("keep_record") if ask.args.get("keep_record") is not None else True,
    )


def _volumes(ask: Asked, common: tuple[EbsVolume, ...]) -> tuple[EbsVolume, ...]:
    found = (*common, *(_volume(ask, text) for text in ask.texts("ebs_volumes")))
    targets = [volume.target.rstrip("/") for volume in found]
    ids = [volume.volume_id for volume in found if volume.volume_id]
    for names in (targets, ids):
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ask.refuse("ebs_volumes", f"has {twice} twice", "Name each volume and each folder once.")
    if len(found) > MOST_VOLUMES:
        raise ask.refuse("ebs_volumes", f"has {len(found)} volumes", f"A machine takes {MOST_VOLUMES}.")
    return found


def _volume(ask: Asked, text: str) -> EbsVolume:
    source, _, target = text.partition(":")
    remedy = 'Each takes SIZE:TARGET or VOLUME:TARGET, such as "200GiB:/scratch" or "vol-0123456789abcdef0:/data".'
    if not _TARGET.fullmatch(target) or not target.strip("/"):
        raise ask.refuse("ebs_volumes", f"has {text!r} in it, which names no folder of the containers", remedy)
    if _VOLUME.fullmatch(source):
        return EbsVolume(target, volume_id=source)
    try:
        gib = -(-size(source) // _GIB)
    except ValueError:
        gib = 0
    if not 1 <= gib <= _LARGEST_VOLUME:
        wrong = f"has {text!r} in it, which names neither a volume nor a size up to 64 TiB"
        raise ask.refuse("ebs_volumes", wrong, remedy)
    return EbsVolume(target, gib)


def _machines(ask: Asked) -> str:
    text = ask.text("machines")
    if text and text not in (PER_TASK, PACKED) and not (text.isdecimal() and 1 <= int(text) <= 1_000):
        raise ask.refuse("machines", f"is {text!r}", f'It takes "{PER_TASK}", "{PACKED}" or a number, such as "2".')
    return text


def _ending(ask: Asked, key: str, default: float) -> float:
    """Seconds; 0 for the word `never` alone, for a machine that ends at once is none."""
    if ask.args.get(key) == NEVER:
        return 0.0
    found = ask.duration(key, default)
    if not found:
        raise ask.refuse(key, "is 0: the machines would end at once", f'Give "{NEVER}" if they shall not end by it.')
    return found


def _budget(ask: Asked) -> float:
    found = ask.number("budget")
    if not found and ask.args.get("budget") is not None:
        raise ask.refuse("budget", "is 0: no machine costs that little", "Give USD, such as 25, or leave it out.")
    return found


def _cidrs(ask: Asked) -> tuple[str, ...]:
    """Each as EC2 takes it, and once: an address alone is a CIDR of its own."""
    found: list[str] = []
    for text in ask.texts("ssh_from"):
        if text == ANYWHERE:
            found.append(text)
            continue
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            remedy = 'Each takes a CIDR, such as "203.0.113.7/32".'
            raise ask.refuse("ssh_from", f"has {text!r} in it, which is none ({error})", remedy) from None
        if network.prefixlen == 0:
            wrong = f"has {text!r} in it: the whole world"
            raise ask.refuse("ssh_from", wrong, f'Give your own address; "{ANYWHERE}" if you mean it.')
        found.append(str(network))
    return tuple(dict.fromkeys(found))
