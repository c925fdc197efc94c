"""The container of each task beyond its limits: its image, which may be built, its mounts, its network and the controller's address."""

import hashlib
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import OVERLAY
from ...spec.jobs import JobSpec
from ..base import CONTROLLER, ClusterRef
from ..container_layout import CONTROLLER_PORT, refuse_targets
from ..image_content import DEFAULT_GPU_IMAGE, DEFAULT_IMAGE, DEFAULT_VERSION, context_hash, named_image
from .engine.engine import Engine
from .labels import (
    HOSTNAME_LABEL,
    PORT_LABEL,
    TRAIN_VOLUME,
    name_prefix,
    own_volume_labels,
    service_name,
    user_volume_labels,
    volume_name,
)
from .swarm import nodes
from .swarm.services import ContainerSettings
from .volumes import Mount, bind, parse_mount, shm, volume

_REQUIREMENTS = """\
FROM {base}
RUN python3 -m pip --version || {{ echo {no_pip}; exit 1; }} && \\
    PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir --no-input --disable-pip-version-check {requirements}
"""
_NO_PIP = "tfdeploy: requirements: the image {base} has no pip for python3. Use an image that has it, or install the packages in yours."

OVERLAY_CONTROLLER = f"{CONTROLLER}:{CONTROLLER_PORT}"
"""The controller's address on the overlay network."""

_HOST_PORTS = range(20000, 32000)
"""The ports of controllers on the host network: below those that Linux uses for outgoing connections (32768 and up)."""


@dataclass(frozen=True)
class ControllerPlacement:
    """Where the controller runs, and how the machines name their GPUs."""

    constraint: str
    """The placement constraint of the controller's service, without `node.`."""
    address: str
    """Where launchers connect to the controller."""
    gpu_kinds: Mapping[str, str]
    """Machine to the name of its GPUs among its generic resources."""


def controller_placement(engine: Engine, cluster: ClusterRef, spec: ClusterSpec) -> ControllerPlacement:
    """The placement on an existing Swarm: the machine that the engine runs on."""
    kinds = nodes.gpu_kinds(engine) if any(job.gpus for job in spec.jobs) else {}
    return ControllerPlacement(
        f"id=={engine.swarm_info()['NodeID']}", _controller_address(engine, cluster, spec), kinds
    )


def containers(
    cluster: ClusterRef, spec: ClusterSpec, plan: Plan, placement: ControllerPlacement
) -> dict[str, ContainerSettings]:
    """The settings of each task's container by hostname, and `controller` for the controller's.

    Raises:
        SpecError: `volumes` is not valid.
    """
    shared = _shared_mounts(cluster, spec, plan)
    build_hash = context_hash(spec)
    jobs = {
        job.name: ContainerSettings(
            job=job.name,
            image=job_image(cluster, spec, job, build_hash),
            network=spec.container.network,
            controller_address=placement.address,
            user=job.container.user,
            mounts=_job_mounts(cluster, spec, job, shared),
            shm_size=job.container.shm_size,
        )
        for job in spec.jobs
    }
    tasks = {
        task.hostname: replace(jobs[task.job], gpu_kind=placement.gpu_kinds.get(task.machine, "") if task.gpus else "")
        for task in plan.tasks
    }
    first_job = jobs[spec.jobs[0].name]
    controller = replace(
        first_job,
        user="0",
        mounts=tuple(shared),
        shm_size=0,
        constraint=placement.constraint,
        cleanup_image=spec.docker.cleanup_image,
    )
    return {**tasks, CONTROLLER: controller}


def _job_mounts(cluster: ClusterRef, spec: ClusterSpec, job: JobSpec, shared: Sequence[Mount]) -> tuple[Mount, ...]:
    where = f"{spec.name}: container.volumes"
    volumes = [parse_mount(where, text, user_volume_labels(cluster)) for text in job.container.volumes]
    targets = [mount["Target"] for mount in (*volumes, *shared, *shm(job.container.shm_size))]
    refuse_targets(where, targets)
    return (*shared, *volumes)


def _shared_mounts(cluster: ClusterRef, spec: ClusterSpec, plan: Plan) -> list[Mount]:
    """`data_dir` and `train_dir`, mounted at the paths that the tasks get."""
    data_dir, train_dir = plan.run.data_dir, plan.run.train_dir
    shared = [bind(data_dir, data_dir, True)] if data_dir.startswith("/") else []
    if not spec.train_dir:
        name = volume_name(cluster, TRAIN_VOLUME)
        shared.append(volume("train_dir", name, train_dir, own_volume_labels(cluster, TRAIN_VOLUME)))
    elif train_dir.startswith("/"):
        shared.append(bind(train_dir, train_dir, False))
    return shared


def _controller_address(engine: Engine, cluster: ClusterRef, spec: ClusterSpec) -> str:
    """Its name on the overlay network; on the host network, a port that no other controller uses."""
    if spec.container.network == OVERLAY:
        return OVERLAY_CONTROLLER
    host = engine.swarm_info()["NodeAddr"]
    controllers = engine.call(lambda api: api.services(filters={"label": [f"{HOSTNAME_LABEL}={CONTROLLER}"]}))
    ports = {item["Spec"]["Name"]: int(item["Spec"]["Labels"][PORT_LABEL]) for item in controllers}
    current = ports.pop(service_name(cluster, CONTROLLER), 0)
    if current in _HOST_PORTS:
        return f"{host}:{current}"
    first = zlib.crc32(name_prefix(cluster).encode()) % len(_HOST_PORTS)
    free = (port for port in [*_HOST_PORTS[first:], *_HOST_PORTS[:first]] if port not in ports.values())
    return f"{host}:{next(free)}"


@dataclass(frozen=True)
class Build:
    """An image to build, and to push if there is a registry."""

    name: str
    context: str
    """The build context, a folder of the user; empty where `dockerfile` is the whole of it."""
    dockerfile: str = ""
    action: str = ""
    """What a message about it names, where `dockerfile` is the whole of it."""


def installed_version() -> str:
    """The version of TensorFlow on this computer; empty without one."""
    for package in ("tensorflow", "tensorflow-cpu"):
        with suppress(PackageNotFoundError):
            return version(package)
    return ""


def version_notices(spec: ClusterSpec, installed: str) -> list[str]:
    """A sentence if jobs run a default image, and this computer has another TensorFlow: a program may behave differently on `local`.
    `installed` is empty where there is none."""
    names = sorted({named_image(spec, job) for job in spec.jobs} & {DEFAULT_IMAGE, DEFAULT_GPU_IMAGE})
    if not names or spec.container.build or installed in ("", DEFAULT_VERSION):
        return []
    where = " and ".join(names)
    return [
        f"TensorFlow {DEFAULT_VERSION} is in {where}, but this computer has {installed}. container.image sets another image"
    ]


def builds(cluster: ClusterRef, spec: ClusterSpec, build_hash: str) -> Mapping[str, Sequence[Build]]:
    """The images to build for each job, in order; its tasks run the last one."""
    return {job.name: chain for job in spec.jobs if (chain := _build_chain(cluster, spec, job, build_hash))}


def job_image(cluster: ClusterRef, spec: ClusterSpec, job: JobSpec, build_hash: str) -> str:
    """The image of a job: the last one built for it, else the named one."""
    chain = _build_chain(cluster, spec, job, build_hash)
    return chain[-1].name if chain else named_image(spec, job)


def _build_chain(cluster: ClusterRef, spec: ClusterSpec, job: JobSpec, build_hash: str) -> Sequence[Build]:
    prefix = f"{spec.container.registry}/" if spec.container.registry else ""
    # A registry refuses two separators in a row, except hyphens and two underscores.
    name = prefix + re.sub("[_-]{2,}", "-", name_prefix(cluster).lower())
    builds_folder = spec.container.build and not job.container.image
    chain = [Build(f"{name}:{build_hash[:16]}", spec.container.build)] if builds_folder else []
    if spec.requirements:
        base = chain[-1].name if chain else named_image(spec, job)
        requirements = " ".join(map(shlex.quote, spec.requirements))
        no_pip = shlex.quote(_NO_PIP.format(base=base))
        text = _REQUIREMENTS.format(base=base, requirements=requirements, no_pip=no_pip)
        action = f"{spec.name}: installing the requirements {', '.join(spec.requirements)}"
        chain.append(Build(f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}", "", text, action))
    return chain
