"""The argument groups `container` (docker and ec2) and `docker`. Pure."""

import ipaddress
import re
from dataclasses import dataclass, field, fields

from .arg_reader import ArgReader

OVERLAY, HOST = "overlay", "host"
NETWORKS = (OVERLAY, HOST)

CLEANUP_IMAGE = "python:3.12-alpine@sha256:c4634f578a412db396771b61b064c6e546c9d6414c7fb5b1b05d5871f1885f7b"
"""An official image, https://hub.docker.com/_/python, of about 20 MB; the digest is that of the index for all processors."""

_LONGEST_PREFIX = 29
"""A /29 has 8 addresses, of which 5 are left for tasks and controller."""


_ENGINE = re.compile(r"(unix|tcp|ssh|npipe|http|https)://\S+")
_IMAGE = re.compile(r"[a-z0-9A-Z][^\s@]*(@sha256:[0-9a-f]{64})?")
_REGISTRY = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]*)?")
_USER = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?")


@dataclass(frozen=True)
class JobContainerSpec:
    """The containers of one job's tasks."""

    image: str = ""
    """Empty for the cluster's image, else the default one."""
    user: str = ""
    volumes: tuple[str, ...] = ()
    shm_size: int = field(default=0, metadata={"unit": "B"})
    placement: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContainerSpec:
    """What all containers of a cluster share."""

    image: str = ""
    build: str = ""
    registry: str = ""
    network: str = OVERLAY
    subnet: str = ""
    retain_volumes: bool = True


@dataclass(frozen=True)
class DockerSpec:
    """The Docker engine that runs the cluster on the backend `docker`."""

    host: str = ""
    encrypted: bool = False
    cleanup_image: str = CLEANUP_IMAGE


JOB_KEYS = tuple(field.name for field in fields(JobContainerSpec))
KEYS = tuple(dict.fromkeys((*JOB_KEYS, *(field.name for field in fields(ContainerSpec)))))
DOCKER_KEYS = tuple(field.name for field in fields(DockerSpec))


def job_container_spec(container: ArgReader, common: JobContainerSpec) -> JobContainerSpec:
    """A group `container` over the cluster's one, `common`. Volumes are added to the cluster's.

    Raises:
        SpecError: an argument is not valid.
    """
    return JobContainerSpec(
        image=container.matching("image", _IMAGE, 'an image, such as "tensorflow/tensorflow:2.20.0"'),
        user=container.matching("user", _USER, 'a user of the image, such as "1000:1000" or "root"') or common.user,
        volumes=(*common.volumes, *container.strings("volumes")),
        shm_size=container.bytes("shm_size") or common.shm_size,
        placement=container.strings("placement") if container.has("placement") else common.placement,
    )


def container_spec(container: ArgReader) -> ContainerSpec:
    """The cluster's group `container`, without what jobs may have themselves (but with the cluster's image).

    Raises:
        SpecError: an argument is not valid.
    """
    network = container.choice("network", NETWORKS, OVERLAY)
    subnet = _subnet(container)
    if subnet and network == HOST:
        raise container.error("subnet", 'the network "host" has no subnet', f'Remove it, or use network="{OVERLAY}".')
    if container.string("build") and container.string("image"):
        raise container.error("build", "cannot be combined with `image`", "Remove one: the image is built or named.")
    registry = container.matching("registry", _REGISTRY, 'a host and a path, such as "registry.example.com/team"')
    return ContainerSpec(
        image=container.string("image"),
        build=container.string("build"),
        registry=registry.rstrip("/"),
        network=network,
        subnet=subnet,
        retain_volumes=container.boolean("retain_volumes", ContainerSpec.retain_volumes),
    )


def docker_spec(docker: ArgReader) -> DockerSpec:
    """The group `docker`.

    Raises:
        SpecError: an argument is not valid.
    """
    return DockerSpec(
        host=docker.matching("host", _ENGINE, 'the address of an engine, such as "ssh://me@manager"'),
        encrypted=docker.boolean("encrypted"),
        cleanup_image=docker.matching("cleanup_image", _IMAGE, f'an image with python3, such as "{CLEANUP_IMAGE}"')
        or DockerSpec.cleanup_image,
    )


def _subnet(container: ArgReader) -> str:
    text = container.string("subnet")
    try:
        network = ipaddress.IPv4Network(text) if text else None
        is_valid = network is None or (str(network) == text and network.prefixlen <= _LONGEST_PREFIX)
    except ValueError:
        is_valid = False
    if not is_valid:
        remedy = f'Use an IPv4 CIDR of at most /{_LONGEST_PREFIX}, such as "10.20.0.0/24".'
        raise container.error("subnet", f"{text!r} is not a valid subnet", remedy)
    return text
