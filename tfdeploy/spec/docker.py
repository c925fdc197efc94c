"""The argument groups `container` (docker, ec2 and kubernetes) and `docker`. Pure."""

import ipaddress
import re
from dataclasses import dataclass

from .arg_reader import ArgReader
from .argument import BY_DEFAULT, Choices, choice, flag, size, text, texts

OVERLAY, HOST = "overlay", "host"
NETWORKS = Choices("Network", "The network of containers.", (OVERLAY, HOST))

CLEANUP_IMAGE = "python:3.12-alpine@sha256:c4634f578a412db396771b61b064c6e546c9d6414c7fb5b1b05d5871f1885f7b"
"""An official image, https://hub.docker.com/_/python, of about 20 MB; the digest is that of the index for all processors."""

_LONGEST_PREFIX = 29
"""A /29 has 8 addresses, of which 5 are left for tasks and controller."""


_ENGINE = re.compile(r"(unix|tcp|ssh|npipe|http|https)://\S+")
_IMAGE = re.compile(r"[a-z0-9A-Z][^\s@]*(@sha256:[0-9a-f]{64})?")
_REGISTRY = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]*)?")
_USER = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?")


def _subnet(args: ArgReader, key: str, value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value) if value else None
        is_valid = network is None or (str(network) == value and network.prefixlen <= _LONGEST_PREFIX)
    except ValueError:
        is_valid = False
    if not is_valid:
        remedy = f'Use an IPv4 CIDR of at most /{_LONGEST_PREFIX}, such as "10.20.0.0/24".'
        raise args.error(key, f"{value!r} is not a valid subnet", remedy)
    if value and args.string("network") == HOST:
        raise args.error(key, 'the network "host" has no subnet', f'Remove it, or use network="{OVERLAY}".')
    return value


def _build(args: ArgReader, key: str, folder: str) -> str:
    if folder and args.string("image"):
        raise args.error(key, "cannot be combined with `image`", "Remove one: the image is built or named.")
    return folder


@dataclass(frozen=True)
class JobContainerSpec:
    """The containers of one job."""

    image: str = text(
        pattern=_IMAGE,
        form='an image, such as "tensorflow/tensorflow:2.20.0"',
        of_job=f"{BY_DEFAULT}. A new one restarts the job's tasks in the same run",
    )
    """The image of the tasks; a new one is a new run. The image needs Python 3.8 or newer as `python3`. By default
    TensorFlow's own image, with CUDA for jobs with GPUs."""
    user: str = text(pattern=_USER, form='a user of the image, such as "1000:1000" or "root"')
    """The user of the containers, as in `docker run --user`; by default the image's."""
    volumes: tuple[str, ...] = texts(adds=True)
    """Mounts of the tasks: "SOURCE:TARGET[:ro]", where SOURCE is a folder of the machine or the name of a volume, or
    "type=volume,source=NAME,target=/FOLDER,volume-opt=…"."""
    shm_size: int = size()
    """The size of /dev/shm, such as "1GiB"; 0 is Docker's default of 64 MiB."""
    placement: tuple[str, ...] = texts()
    """Constraints on the machine of a task: FIELD:OPERATOR[:PARAMETER] with Marathon's operators UNIQUE, CLUSTER, GROUP_BY,
    LIKE, UNLIKE, MAX_PER and IS. FIELD is hostname, address or a label of the node. By default tasks are spread evenly."""


@dataclass(frozen=True)
class ContainerSpec(JobContainerSpec):
    """Containers, on the backends "docker", "ec2" and "kubernetes"."""

    build: str = text(check=_build)
    """A folder with a Dockerfile, relative to the Pulumi program. The image is built from it, tagged by the hash of the folder's
    content, and pushed to `registry` if that is set."""
    registry: str = text(
        pattern=_REGISTRY,
        form='a host and a path, such as "registry.example.com/team"',
        check=lambda _, key, path: path.rstrip("/"),
    )
    """The registry and path for built images, such as "registry.example.com/team". The credentials are those of `docker login`.
    Required for built images if there is more than one machine."""
    network: str = choice(NETWORKS, OVERLAY)
    """The network of the containers. "overlay": the cluster has its own network with DNS names. "host": containers use the network of
    their machine, which costs no performance and isolates nothing."""
    subnet: str = text(check=_subnet)
    """The addresses of the overlay network, such as "10.20.0.0/24"; by default Docker chooses them."""
    retain_volumes: bool = flag(True)
    """Whether `destroy` retains what may be the only copy of a checkpoint: the volume of the default `train_dir`, and on "ec2"
    the file system of `efs="new"`. Volumes that you name are always retained."""


@dataclass(frozen=True)
class DockerSpec:
    """The Docker engine, on the backend "docker"."""

    host: str = text(pattern=_ENGINE, form='the address of an engine, such as "ssh://me@manager"')
    """The engine that manages the Swarm: "unix://…", "ssh://USER@HOST" or "tcp://HOST:PORT". By default $DOCKER_HOST, or this one."""
    encrypted: bool = flag()
    """Whether the traffic of the overlay network is encrypted between machines. It costs performance; a change restarts all tasks."""
    cleanup_image: str = text(CLEANUP_IMAGE, _IMAGE, f'an image with python3, such as "{CLEANUP_IMAGE}"')
    """The image that removes volumes of the cluster from machines other than the manager, which needs their Docker socket:
    for `retain_volumes=False` and for `tfdeploy restart --without-data`. It needs Python 3.8 or newer as `python3`."""
