"""The settings of each task's container beyond its limits: image, mounts, network and the controller's address."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec, JobSpec
from ...spec.docker import OVERLAY
from ..base import CONTROLLER, ClusterRef
from ..image_content import context_hash
from . import images, validate
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
from .swarm import nodes, services
from .swarm.services import ContainerSettings
from .volumes import Mount, bind, parse_mount, shm, volume

TRAIN_FOLDER = "/tfdeploy/train"
"""Where the cluster's volume for checkpoints is mounted."""

OVERLAY_CONTROLLER = f"{CONTROLLER}:{services.CONTROLLER_PORT}"
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
            image=images.job_image(cluster, spec, job, build_hash),
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
    validate.refuse_mounts(where, [*volumes, *shared, *shm(job.container.shm_size)])
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
