"""What `pulumi destroy` keeps on the machines of a Swarm, and how a user removes it. Pure."""

from collections.abc import Mapping, Sequence

from ....plan.plan import Plan
from ....plan.retained_data import RetainedData
from ...base import ClusterRef
from ..container_settings import ContainerSettings
from ..labels import TRAIN_VOLUME, volume_name


def retained_data(
    cluster: ClusterRef,
    plan: Plan,
    containers: Mapping[str, ContainerSettings],
    retain_checkpoints: bool,
    record_folder: str,
    sizes: Mapping[str, int],
    manager: str,
) -> tuple[RetainedData, ...]:
    """The cluster's volumes, those that the user named, and a `train_dir` of the user's. `sizes` are those of the volumes on the
    manager: the other engines are not asked."""
    machines = {task.hostname: task.machine for task in plan.tasks}
    checkpoints = volume_name(cluster, TRAIN_VOLUME)
    titles = {} if cluster["id"] else {checkpoints: "of the cluster"}  # before the first update there is no name
    by_volume: dict[str, set[str]] = {}
    for hostname, container in containers.items():
        for mount in container.mounts:
            if mount["Type"] == "volume" and hostname in machines:
                by_volume.setdefault(mount["Source"], set()).add(machines[hostname])
    volumes = [
        RetainedData(
            "checkpoints" if name == checkpoints else "volume",
            f"volume {titles.get(name, name)} on {', '.join(sorted(mounting))}",
            retain_checkpoints or name != checkpoints,
            sizes.get(name) if mounting == {manager} else None,
        )
        for name, mounting in sorted(by_volume.items())
    ]
    train_dir = plan.run.train_dir
    return (
        RetainedData("record", record_folder, True),
        *([] if checkpoints in by_volume else [RetainedData("checkpoints", str(train_dir), True)]),
        *volumes,
    )


def retained_volume_text(cluster: ClusterRef, machines: Sequence[str]) -> str:
    """Where the checkpoints of a destroyed cluster are, and how they are removed; empty where there are none."""
    if not machines:
        return ""
    name = volume_name(cluster, TRAIN_VOLUME)
    which = "there" if len(machines) == 1 else "on each"
    return (
        f"the checkpoints are retained in the volume {name} on {', '.join(machines)}; "
        f"`docker volume rm {name}` {which} removes them"
    )


def remaining_volume_text(cluster: ClusterRef, machines: Sequence[str], reason: str) -> str:
    """Where the volume of the checkpoints could not be removed; empty where it was."""
    if not machines:
        return ""
    name = volume_name(cluster, TRAIN_VOLUME)
    return (
        f"the volume {name} could not be removed from {', '.join(machines)} ({reason}); "
        f"run `docker volume rm {name}` where it exists, or set docker.cleanup_image to an image that these machines can pull"
    )
