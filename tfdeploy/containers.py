"""What a job asks of its containers, where tasks are containers. Pure."""

import ipaddress
import re
from dataclasses import dataclass

from .asked import Asked

_IMAGE = re.compile(r"[a-z0-9A-Z][^\s@]*(@sha256:[0-9a-f]{64})?")
_REGISTRY = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]*)?")
_USER = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?")

OVERLAY, HOST = "overlay", "host"
NETWORKS = (OVERLAY, HOST)

KEYS = ("image", "user", "volumes", "shm_size", "placement")


@dataclass(frozen=True)
class ContainerSpec:
    """The containers of one job's tasks."""

    image: str = ""
    """"" for the cluster's, or the default."""
    user: str = ""
    volumes: tuple[str, ...] = ()
    shm_size: int = 0
    placement: tuple[str, ...] = ()


def container_spec(ask: Asked, common: ContainerSpec) -> ContainerSpec:
    """What is asked for; `common` is the cluster's, over which one job's own goes. Volumes are added to the cluster's.

    Raises:
        SpecError: an argument cannot be what the user wants.
    """
    return ContainerSpec(
        image=ask.matching("image", _IMAGE, 'an image, such as "tensorflow/tensorflow:2.20.0"'),
        user=ask.matching("user", _USER, 'a user of the image, such as "1000:1000" or "root"') or common.user,
        volumes=(*common.volumes, *ask.texts("volumes")),
        shm_size=ask.bytes("shm_size") or common.shm_size,
        placement=ask.texts("placement") if ask.args.get("placement") is not None else common.placement,
    )


@dataclass(frozen=True)
class EngineSpec:
    """How a cluster of containers stands on its engine."""

    docker_host: str = ""
    network: str = OVERLAY
    subnet: str = ""
    build: str = ""
    registry: str = ""
    keep_volumes: bool = False


_NARROWEST = 29
"""Of the 8 addresses of a /29 five are for tasks and keeper."""

_ENGINE = re.compile(r"(unix|tcp|ssh|npipe|http|https)://\S+")


def engine_spec(ask: Asked) -> EngineSpec:
    """What is asked for.

    Raises:
        SpecError: an argument cannot be what the user wants.
    """
    network = ask.text("network") or OVERLAY
    if network not in NETWORKS:
        raise ask.refuse("network", f"is {network!r}", f"It takes one of: {', '.join(NETWORKS)}.")
    subnet = _subnet(ask)
    if subnet and network == HOST:
        raise ask.refuse(
            "subnet", "is given with the host network", "Only an overlay network has addresses of its own."
        )
    if ask.text("build") and ask.text("image"):
        raise ask.refuse("build", "is given together with image", "Give one: what is built is the image.")
    return EngineSpec(
        docker_host=ask.matching("docker_host", _ENGINE, 'an address, such as "ssh://me@manager"'),
        network=network,
        subnet=subnet,
        build=ask.text("build"),
        registry=ask.matching("registry", _REGISTRY, 'a host and a path, such as "registry.example.com/team"').rstrip(
            "/"
        ),
        keep_volumes=ask.flag("keep_volumes"),
    )


def _subnet(ask: Asked) -> str:
    text = ask.text("subnet")
    try:
        network = ipaddress.IPv4Network(text) if text else None
        whole = network is None or (str(network) == text and network.prefixlen <= _NARROWEST)
    except ValueError:
        whole = False
    if not whole:
        raise ask.refuse("subnet", f"is {text!r}", 'It takes a pool of addresses, such as "10.20.0.0/24".')
    return text
