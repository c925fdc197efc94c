"""How many machines a cluster needs, and of which type. Pure."""

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....agent.model.run_state import TENSORBOARD
from ....errors import SpecError
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PER_TASK, InstanceSpec
from ....spec.jobs import JobSpec
from ....units import counted, text_of_size
from .model import InstanceType, MachineSpec, MachineState


def pools(spec: ClusterSpec) -> Mapping[str, tuple[JobSpec, ...]]:
    """Pool to its jobs. Jobs that request equal machines share a pool, unless each task has its own machine. No machine is
    created for TensorBoard."""
    groups: dict[object, list[JobSpec]] = {}
    for job in spec.training_jobs:
        alone = job.name if job.ec2.machine_layout == PER_TASK else ""
        groups.setdefault((job.ec2, alone), []).append(job)
    return {
        "all"
        if len(jobs) == len(spec.training_jobs) and jobs[0].ec2.machine_layout != PER_TASK
        else jobs[0].name: tuple(jobs)
        for jobs in groups.values()
    }


def machine_requests(
    spec: ClusterSpec, types: Mapping[str, InstanceType], instances: Mapping[str, MachineState]
) -> tuple[MachineSpec, ...]:
    """The machines of the cluster, in order; `instances` are those that exist.

    Raises:
        SpecError: a task is too large for a machine of its type, there would be more machines than `max_machines`, or several
            machines would need the same volume.
    """
    requests: list[MachineSpec] = []
    for pool, jobs in pools(spec).items():
        instance = jobs[0].ec2
        instance_type = types[instance.instance_type]
        for job in jobs:
            _refuse_too_large(spec, job, instance_type)
        infix = "" if pool == "all" else f"{jobs[0].stem}-"
        names = tuple(job.name for job in jobs)
        requests += [
            MachineSpec(f"{spec.name}-{infix}m{index}", pool, names, instance_type, instance)
            for index in range(_machine_count(jobs, instance, instance_type))
        ]
    _refuse_too_many(spec, len(requests))
    _refuse_shared_volumes(spec, requests)
    manager = choose_manager(requests, instances)
    return tuple(_with_manager(spec, request, request.machine == manager) for request in requests)


def _with_manager(spec: ClusterSpec, request: MachineSpec, is_manager: bool) -> MachineSpec:
    tensorboard = spec.job(TENSORBOARD)
    takes_tensorboard = tensorboard is not None and (is_manager or bool(tensorboard.container.placement))
    jobs = (*request.jobs, TENSORBOARD) if takes_tensorboard else request.jobs
    return replace(request, is_manager=is_manager, jobs=jobs)


def choose_manager(requests: Sequence[MachineSpec], instances: Mapping[str, MachineState]) -> str:
    """The machine that manages the Swarm: the present manager, else the first that is not requested as a spot instance."""
    names = {request.machine for request in requests}
    present = [name for name, instance in instances.items() if instance.is_manager and name in names]
    on_demand = [request.machine for request in requests if not request.spec.spot]
    return [*present, *on_demand, requests[0].machine][0]


def _machine_count(jobs: Sequence[JobSpec], instance: InstanceSpec, instance_type: InstanceType) -> int:
    """The number of machines for the tasks of a pool: first fit, the largest task first, for `packed`."""
    if instance.machine_count:
        return instance.machine_count
    if instance.machine_layout == PER_TASK:
        return sum(job.count for job in jobs)
    demands = sorted(((job.gpus, job.memory, job.cpus) for job in jobs for _ in range(job.count)), reverse=True)
    free: list[list[float]] = []
    for demand, equal in itertools.groupby(demands):
        place = 0
        for _ in equal:  # a machine without room for one task has none for the next of the same size
            while place < len(free) and not _fits(free[place], demand):
                place += 1
            if place == len(free):
                free.append([float(instance_type.gpus), float(instance_type.usable_memory), float(instance_type.cpus)])
            free[place] = [left - taken for left, taken in zip(free[place], demand, strict=True)]
    return len(free)


def _fits(free: Sequence[float], demand: Sequence[float]) -> bool:
    """Whether a machine has the GPUs, the memory and the processors that a task reserves."""
    return all(map(operator.ge, free, demand))


def _refuse_too_many(spec: ClusterSpec, count: int) -> None:
    most = spec.ec2.max_machines
    if count > most:
        wrong = f"is {most}, but the cluster needs {counted(count, 'machine')}"
        raise SpecError(f"{spec.name}: ec2.max_machines", wrong, f"Set max_machines={count} if that is intended.")


def _refuse_shared_volumes(spec: ClusterSpec, requests: Sequence[MachineSpec]) -> None:
    """An existing volume can be attached to one machine."""
    machines: dict[str, list[str]] = {}
    for request in requests:
        for volume in request.volumes:
            if volume.volume_id:
                machines.setdefault(volume.volume_id, []).append(request.machine)
    for volume_id, names in machines.items():
        if len(names) > 1:
            wrong = f"{volume_id} cannot be attached to {len(names)} machines: {', '.join(names)}"
            remedy = (
                "Request it under `jobs`, for a job with one machine. Set ec2.efs for files that all machines share."
            )
            raise SpecError(f"{spec.name}: ec2.ebs_volumes", wrong, remedy)


def _refuse_too_large(spec: ClusterSpec, job: JobSpec, instance_type: InstanceType) -> None:
    limits = {
        "gpus": (job.gpus, instance_type.gpus),
        "cpus": (job.cpus, instance_type.cpus),
        "memory": (job.memory, instance_type.usable_memory),
    }
    for key, (needed, available) in limits.items():
        if needed > available:
            texts = (f"{needed:g}", str(available))
            if key == "memory":
                texts = (text_of_size(int(needed)), text_of_size(int(available)))
            wrong = f"each task needs {texts[0]}, but {instance_type} has {texts[1]} for tasks"
            where = f"{spec.name}: jobs.{job.name}.{key}"
            raise SpecError(where, wrong, "Choose a larger instance_type, or a smaller value.")
