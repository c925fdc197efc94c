"""Which machines a cluster's tasks get. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..agent.states import TENSORBOARD
from ..errors import SpecError
from ..instances import PACKED, PER_TASK, InstanceSpec
from ..quantities import text_of_size
from ..spec import ClusterSpec, JobSpec
from .catalog import image_name
from .facts import Instance, InstanceType

POOL = "pool"
"""The label of a machine that says whose it is; each job's tasks stand in one pool."""

_KEPT_BACK = 0.08
"""The part of a machine's memory that its system has: Linux shows about 95 % of what AWS names, and needs some itself."""


@dataclass(frozen=True)
class Wanted:
    """A machine that the cluster shall have."""

    machine: str
    pool: str
    jobs: tuple[str, ...]
    """Whose tasks may stand on it: those of the pool, and TensorBoard on the one that manages, or where it is placed."""
    kind: InstanceType
    spec: InstanceSpec
    manages: bool = False

    @property
    def spot(self) -> bool:
        """Whether it is a spot instance: never the one that manages the Swarm."""
        return self.spec.spot and not self.manages

    @property
    def image(self) -> str:
        """What names its image (`catalog.image_name`)."""
        return image_name(self.spec.ami, self.kind)

    @property
    def disks(self) -> tuple[str, ...]:
        """What its further disks are asked for as."""
        return tuple(volume.source for volume in self.spec.ebs_volumes)

    @property
    def memory(self) -> int:
        """What of its memory tasks can have, in bytes."""
        return usable(self.kind)


def usable(kind: InstanceType) -> int:
    """What of a type's memory tasks can have, in bytes."""
    return int(kind.memory * (1 - _KEPT_BACK))


def pools(spec: ClusterSpec) -> Mapping[str, tuple[JobSpec, ...]]:
    """Pool to the jobs whose tasks stand in it. Jobs that ask for the same machines share them, unless each task has its own.
    For TensorBoard no machine is made."""
    alike: dict[object, list[JobSpec]] = {}
    for job in spec.crew:
        own = job.name if job.instance.machines == PER_TASK else ""
        alike.setdefault((job.instance, own), []).append(job)
    return {
        "all" if len(jobs) == len(spec.crew) and jobs[0].instance.machines != PER_TASK else jobs[0].name: tuple(jobs)
        for jobs in alike.values()
    }


def wanted(
    spec: ClusterSpec, types: Mapping[str, InstanceType], instances: Mapping[str, Instance]
) -> tuple[Wanted, ...]:
    """The machines, in order; `instances` are those that are there.

    Raises:
        SpecError: a task fits on no machine of its type, or there would be more machines than agreed to.
    """
    found: list[Wanted] = []
    for pool, jobs in pools(spec).items():
        asked = jobs[0].instance
        kind = types[asked.instance_type]
        for job in jobs:
            _refuse_too_large(spec, job, kind)
        infix = "" if pool == "all" else f"{jobs[0].stem}-"
        whose = tuple(job.name for job in jobs)
        found += [
            Wanted(f"{spec.name}-{infix}m{index}", pool, whose, kind, asked)
            for index in range(_count(jobs, asked, kind))
        ]
    most = spec.fleet.max_machines
    if len(found) > most:
        wrong = f"the cluster would have {len(found)} machines, and {most} is the most agreed to"
        raise SpecError(f"{spec.name}: max_machines", wrong, f"Give max_machines={len(found)} if you mean it.")
    _refuse_shared_volumes(spec, found)
    master = manager(found, instances)
    return tuple(_settled(spec, item, item.machine == master) for item in found)


def _settled(spec: ClusterSpec, item: Wanted, manages: bool) -> Wanted:
    board = spec.job(TENSORBOARD)
    takes_board = board is not None and (manages or bool(board.container.placement))
    return replace(item, manages=manages, jobs=(*item.jobs, TENSORBOARD) if takes_board else item.jobs)


def manager(found: Sequence[Wanted], instances: Mapping[str, Instance]) -> str:
    """The machine that manages the Swarm: the one that does, else the first that would not be a spot instance."""
    names = {item.machine for item in found}
    stands = [name for name, instance in instances.items() if instance.manages and name in names]
    steady = [item.machine for item in found if not item.spec.spot]
    return [*stands, *steady, found[0].machine][0]


def _count(jobs: Sequence[JobSpec], asked: InstanceSpec, kind: InstanceType) -> int:
    """How many machines the tasks of these jobs get."""
    if asked.machines == PER_TASK:
        return sum(job.count for job in jobs)
    if asked.machines != PACKED:
        return int(asked.machines)
    demands = sorted(((job.gpus, job.memory, job.cpus) for job in jobs for _ in range(job.count)), reverse=True)
    free: list[list[float]] = []
    for demand in demands:
        room = next((one for one in free if all(map(float.__ge__, one, map(float, demand)))), None)
        if room is None:
            free.append(room := [float(kind.gpus), float(usable(kind)), float(kind.cpus)])
        room[:] = [there - taken for there, taken in zip(room, demand, strict=True)]
    return len(free)


def _refuse_shared_volumes(spec: ClusterSpec, found: Sequence[Wanted]) -> None:
    """A volume that is there already is one machine's."""
    for volume in (volume.volume_id for item in found for volume in item.spec.ebs_volumes if volume.volume_id):
        takers = [item.machine for item in found if volume in item.disks]
        if len(takers) > 1:
            wrong = f"{volume} cannot be of {len(takers)} machines at once: {', '.join(takers)}"
            remedy = "Give it to a job with one machine, under `jobs`; `efs` is for all."
            raise SpecError(f"{spec.name}: ebs_volumes", wrong, remedy)


def _refuse_too_large(spec: ClusterSpec, job: JobSpec, kind: InstanceType) -> None:
    where = f"{spec.name}: jobs: {job.name}"
    asked = {
        "gpus": (job.gpus, kind.gpus),
        "cpus": (job.cpus, kind.cpus),
        "memory": (job.memory, usable(kind)),
    }
    for key, (wants, has) in asked.items():
        if wants > has:
            words = (text_of_size(int(wants)), text_of_size(int(has))) if key == "memory" else (f"{wants:g}", str(has))
            wrong = f"each task asks for {words[0]}, and {kind} has {words[1]} for tasks"
            raise SpecError(f"{where}: {key}", wrong, "Choose a larger instance_type, or ask for less.")
