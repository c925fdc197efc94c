"""What `pulumi destroy` keeps of a cluster on EC2, and what it removes. Pure."""

from collections.abc import Iterator, Mapping

from ...plan.plan import Plan
from ...plan.retained_data import RetainedData
from ...spec.cluster import ClusterSpec
from ...spec.ec2 import NEW
from .machine.machines import planned_instance
from .machine.user_data import SHARED, disk_folder

_GIB = 1 << 30


def retained_data(
    spec: ClusterSpec, plan: Plan, records: tuple[str, str], file_systems: Mapping[str, int]
) -> tuple[RetainedData, ...]:
    """The record in S3 and on this computer (`records`), the checkpoints, and the disks; `file_systems` are those that were created
    for the cluster, id to bytes."""
    return (
        RetainedData("record", records[1], True),
        RetainedData("record", records[0], spec.ec2.retain_record),
        *_checkpoints(spec, plan, file_systems),
        *_disks(plan),
    )


def _checkpoints(spec: ClusterSpec, plan: Plan, file_systems: Mapping[str, int]) -> Iterator[RetainedData]:
    train_dir, retain = plan.run.train_dir, spec.container.retain_volumes
    if not train_dir:
        return
    if not f"{train_dir}/".startswith(f"{SHARED}/"):
        is_url = "://" in train_dir
        place = train_dir if is_url else f"{train_dir} on {', '.join(sorted({task.machine for task in plan.tasks}))}"
        yield RetainedData("checkpoints", place, is_url or _is_on_users_volume(plan, train_dir))
    elif spec.ec2.efs != NEW:
        yield RetainedData("checkpoints", f"{train_dir} on the file system {spec.ec2.efs}", True)
    elif not file_systems:
        yield RetainedData("checkpoints", f"{train_dir} on the new file system (EFS)", retain)
    for name, size in file_systems.items():
        yield RetainedData("checkpoints", f"{train_dir} on the file system {name}", retain, size)


def _is_on_users_volume(plan: Plan, train_dir: str) -> bool:
    return any(
        volume.volume_id and f"{train_dir}/".startswith(f"{disk_folder(number)}/")
        for machine in plan.machines
        for number, volume in enumerate(planned_instance(machine).volumes)
    )


def _disks(plan: Plan) -> Iterator[RetainedData]:
    """The further disks. The user's own volumes are detached when their machine ends."""
    for machine in plan.machines:
        for volume in planned_instance(machine).volumes:
            if volume.volume_id:
                yield RetainedData("volume", f"{volume.volume_id} of {machine.name}", True)
            elif machine.name not in plan.unneeded:
                yield RetainedData("disk", f"{volume.target} of {machine.name}", False, volume.size * _GIB)
