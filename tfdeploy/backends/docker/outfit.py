"""What the container of a task, or of the keeper, has beyond what every task has: image, mounts, network, the keeper's address."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...containers import OVERLAY
from ...plan import Plan
from ...spec import ClusterSpec, JobSpec
from ..base import KEEPER, Cluster
from . import images, machines, mounts, names, refusals, services
from .engine import Engine

TRAIN = "/tfdeploy/train"
"""Where the cluster's own volume for checkpoints is mounted."""

OVERLAY_KEEPER = f"{KEEPER}:{services.KEEPER_PORT}"
"""Where launchers find the keeper on the overlay network."""

_HOST_PORTS = range(20000, 32000)
"""Where keepers listen on the host network: below what Linux gives to outgoing connections (32768 and up)."""


@dataclass(frozen=True)
class Post:
    """Where the keeper stands, and what the machines call their GPUs."""

    constraint: str
    """Of the keeper's service, after `node.`."""
    address: str
    """Where launchers find the keeper."""
    gpu_kinds: Mapping[str, str]
    """Machine to the kind of generic resource that its GPUs are."""


def post(engine: Engine, cluster: Cluster, spec: ClusterSpec, plan: Plan) -> Post:
    """The keeper's post on a Swarm that stands: the machine that the engine is on."""
    kinds = machines.gpu_kinds(engine) if any(task.gpus for task in plan.tasks) else {}
    return Post(f"id=={engine.swarm()['NodeID']}", _keeper_address(engine, cluster, spec), kinds)


def containers(cluster: Cluster, spec: ClusterSpec, plan: Plan, where: Post) -> dict[str, dict[str, Any]]:
    """Hostname to what its container has, `keeper` to the keeper's; plain JSON.

    Raises:
        SpecError: `volumes` asks for what cannot be.
    """
    shared = _folders(cluster, spec, plan)
    about = {"network": spec.engine.network, "keeper": where.address}
    content = images.content(spec)
    jobs = {
        job.name: {
            **about,
            "job": job.name,
            "image": images.image(cluster, spec, job, content),
            **_own(cluster, spec, job, shared),
        }
        for job in spec.jobs
    }
    found = {
        task.hostname: {**jobs[task.job], "gpu_kind": where.gpu_kinds.get(task.machine, "") if task.gpus else ""}
        for task in plan.tasks
    }
    first = jobs[spec.jobs[0].name]
    keeper = {"user": "0", "mounts": shared, "shm_size": 0, "post": where.constraint}
    return {**found, KEEPER: {**first, **keeper}}


def _own(cluster: Cluster, spec: ClusterSpec, job: JobSpec, shared: list[mounts.Mount]) -> dict[str, Any]:
    """What a job's containers have of their own."""
    where = f"{spec.name}: volumes"
    own = [mounts.parse(where, text, names.labels(cluster)) for text in job.container.volumes]
    size = job.container.shm_size
    refusals.refuse_mounts(where, [*own, *shared, *mounts.shm(size)])
    return {"user": job.container.user, "mounts": [*shared, *own], "shm_size": size}


def _folders(cluster: Cluster, spec: ClusterSpec, plan: Plan) -> list[mounts.Mount]:
    """`data_dir` and `train_dir`, mounted where the tasks are told that they are."""
    data, train = plan.run["data_dir"], plan.run["train_dir"]
    found = [mounts.bind(data, data, True)] if data.startswith("/") else []
    if not spec.train_dir:
        found.append(mounts.volume("train_dir", names.volume(cluster, names.TRAIN), train, names.labels(cluster)))
    elif train.startswith("/"):
        found.append(mounts.bind(train, train, False))
    return found


def _keeper_address(engine: Engine, cluster: Cluster, spec: ClusterSpec) -> str:
    """Where launchers find the keeper: its name on the overlay, else a port that no other keeper has."""
    if spec.engine.network == OVERLAY:
        return OVERLAY_KEEPER
    host = engine.swarm()["NodeAddr"]
    found = engine.call(lambda api: api.services(filters={"label": [f"{names.HOSTNAME}={KEEPER}"]}))
    ports = {item["Spec"]["Name"]: int(item["Spec"]["Labels"][names.PORT]) for item in found}
    mine = ports.pop(names.service(cluster, KEEPER), 0)
    if mine in _HOST_PORTS:
        return f"{host}:{mine}"
    first = zlib.crc32(names.base(cluster).encode()) % len(_HOST_PORTS)
    free = (port for port in [*_HOST_PORTS[first:], *_HOST_PORTS[:first]] if port not in ports.values())
    return f"{host}:{next(free)}"
