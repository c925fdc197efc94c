"""What is known of EC2 when a plan is made. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .failures import Failure

LIVE = ("pending", "running", "stopping", "stopped")
"""States of an instance that is still there.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html"""

X86, ARM = "x86_64", "arm64"


@dataclass(frozen=True)
class InstanceType:
    """One type of machine."""

    name: str
    cpus: int
    memory: int
    """Bytes."""
    gpus: int = 0
    architecture: str = X86
    spot: bool = True
    zones: frozenset[str] = frozenset()
    """Where in the region it is offered."""

    def __str__(self) -> str:
        gpus = f", {self.gpus} gpus" if self.gpus else ""
        return f"{self.name} ({self.cpus} cpus, {self.memory >> 30} GiB{gpus})"


@dataclass(frozen=True)
class Subnet:
    """Where machines are made."""

    subnet_id: str
    vpc_id: str
    zone: str
    vpc_cidrs: tuple[str, ...]


@dataclass(frozen=True)
class Instance:
    """A machine that is there."""

    machine: str
    instance_id: str
    state: str
    instance_type: str
    image_id: str
    life: str
    manages: bool
    subnet_id: str = ""
    public_ip: str = ""
    private_ip: str = ""
    launched: float = 0.0
    spot: bool = False
    image: str = ""
    files: str = ""
    disks: str = ""
    """What its image, its shared files and its further disks were asked for as."""
    access: str = ""
    """How it was made to be reached; empty for `public`."""


@dataclass(frozen=True)
class Facts:
    """All that a plan is made from."""

    region: str
    subnet: Subnet
    types: Mapping[str, InstanceType]
    images: Mapping[str, str]
    """What was asked for (`catalog.image_name`) to the id of the image that it is now."""
    instances: Mapping[str, Instance]
    """Machine to the newest instance that is still there."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Machine to the last failure of its boot, where it has not become ready since."""
