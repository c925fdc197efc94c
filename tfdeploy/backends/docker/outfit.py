"""What the container of a task, or of the keeper, has beyond what every task has: image, mounts, network, the keeper's address."""

import zlib
from typing import Any

from ...plan import Plan, TaskPlan
from ...spec import ClusterSpec
from ..base import Cluster
from . import images, machines, mounts, names, refusals, services
from .engine import Engine

TRAIN = "/tfdeploy/train"
"""Where the cluster's own volume for checkpoints is mounted."""

_HOST_PORTS = range(20000, 32000)
"""Where keepers listen on the host network: below what Linux gives to outgoing connections (32768 and up)."""


def container(engine: Engine, cluster: Cluster, spec: ClusterSpec, plan: Plan, task: TaskPlan | None) -> dict[str, Any]:
    """What a task's container has, or, without a task, the keeper's; plain JSON."""
    job = next(job for job in spec.jobs if task is None or job.name == task.job)
    shared = _folders(cluster, spec, plan)
    about = {
        "job": job.name,
        "image": images.image(cluster, spec, job, images.content(spec)),
        "network": spec.engine.network,
        "keeper": _keeper_address(engine, cluster, spec),
    }
    if task is None:
        return {**about, "user": "0", "mounts": shared, "manager": engine.swarm()["NodeID"]}
    where = f"{spec.name}: volumes"
    own = [mounts.parse(where, text, names.labels(cluster)) for text in job.container.volumes]
    shm = [mounts.tmpfs("/dev/shm", job.container.shm_size)] if job.container.shm_size else []
    refusals.refuse_mounts(where, [*own, *shared, *shm])
    return {
        **about,
        "user": job.container.user,
        "mounts": [*shared, *own],
        "shm_size": job.container.shm_size,
        "gpu_kind": machines.gpu_kind(engine, task.machine) if task.gpus else "",
    }


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
    if spec.engine.network == services.OVERLAY:
        return f"{names.KEEPER}:{services.KEEPER_PORT}"
    host = engine.swarm()["NodeAddr"]
    found = engine.call(lambda api: api.services(filters={"label": [f"{names.HOSTNAME}={names.KEEPER}"]}))
    ports = {item["Spec"]["Name"]: int(item["Spec"]["Labels"][names.PORT]) for item in found}
    mine = ports.pop(names.service(cluster, names.KEEPER), 0)
    if mine in _HOST_PORTS:
        return f"{host}:{mine}"
    first = zlib.crc32(names.base(cluster).encode()) % len(_HOST_PORTS)
    free = (port for port in [*_HOST_PORTS[first:], *_HOST_PORTS[:first]] if port not in ports.values())
    return f"{host}:{next(free)}"
