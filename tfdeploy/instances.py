"""What a cluster asks of its EC2 instances. Pure.

The words are AWS's: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .asked import Asked

KEYS = ("instance_type", "ami", "spot", "machines", "root_volume_size", "root_volume_type")
"""What one job may have of its own."""

DEEP_LEARNING = "deep-learning"
ANYWHERE = "anywhere"
NEW = "new"
PER_TASK, PACKED = "per task", "packed"

MOST_MACHINES = 20
"""More are made only by an explicit word (`max_machines`)."""

_GIB = 1 << 30
_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_AMI = re.compile(rf"ami-[0-9a-f]+|ssm:/[A-Za-z0-9_./-]+|{DEEP_LEARNING}")
_EFS = re.compile(rf"fs-[0-9a-f]+|{NEW}")
_USER = re.compile(r"[a-z_][a-z0-9_-]*")
_VPC, _SUBNET = re.compile(r"vpc-[0-9a-f]+"), re.compile(r"subnet-[0-9a-f]+")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
_VOLUME_TYPES = ("gp3", "gp2", "io2", "io1", "st1", "sc1", "standard")
_OURS = "tfdeploy:"


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


def instance_spec(ask: Asked, common: InstanceSpec) -> InstanceSpec:
    """What is asked for; `common` is the cluster's, over which one job's own goes.

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
    )


def _machines(ask: Asked) -> str:
    text = ask.text("machines")
    if text and text not in (PER_TASK, PACKED) and not (text.isdecimal() and 1 <= int(text) <= 1_000):
        raise ask.refuse("machines", f"is {text!r}", f'It takes "{PER_TASK}", "{PACKED}" or a number, such as "2".')
    return text


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
