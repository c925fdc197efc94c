"""From AWS's inventory to the machines of a plan: how many, of which type, and what the plan does to them."""

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ....agent.model.run_state import TENSORBOARD
from ....errors import SpecError
from ....paths import NO_ID, cluster_folder
from ....plan.plan import Plan
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PER_TASK, PUBLIC, Ec2Spec, InstanceSpec
from ....spec.jobs import JobSpec
from ....units import counted, text_of_size
from ...base import ClusterRef
from ..aws import api
from ..aws.api import ROLES_PATH
from . import boot, model, ssh
from .model import (
    Ec2Inventory,
    Ec2Machine,
    InstanceType,
    MachineSpec,
    MachineState,
    Subnet,
    ec2_machine,
    requested_image,
)
from .user_data import GPU, SHARED

PROVIDER = "Amazon"


def manager(machines: Iterable[Machine]) -> Machine:
    """The machine that manages the Swarm."""
    return next(machine for machine in machines if machine.role == model.MASTER)


def lost(machines: Sequence[Machine]) -> frozenset[str]:
    """The machines that are gone; all of them, where the one that manages the Swarm is."""
    manager_exists = manager(machines).exists
    return frozenset(machine.name for machine in machines if not (machine.exists and manager_exists))


def tags(cluster: ClusterRef) -> dict[str, str]:
    """The tags of all AWS resources of a cluster, for people too."""
    values = {"project": cluster["project"], "stack": cluster["stack"], "cluster": cluster["name"]}
    named = {f"{model.PREFIX}{key}": value for key, value in values.items()}
    return {**named, model.CLUSTER_ID: cluster["id"], model.OWNER: cluster["owner"]}


def id_tag(cluster: ClusterRef) -> dict[str, str]:
    """The tag that decides what belongs to a cluster; before it has an id, one that nothing has."""
    return {model.CLUSTER_ID: cluster["id"] or NO_ID}


def role_path(cluster: ClusterRef) -> str:
    """The IAM path of a cluster's roles and instance profiles."""
    return f"{ROLES_PATH}{cluster_folder(cluster)}/"


def shared_folder(cluster: ClusterRef, spec: ClusterSpec) -> str:
    """The cluster's folder on the shared file system: from `train_dir`, else one named by the cluster."""
    prefix = f"{SHARED}/"
    requested = spec.train_dir.removeprefix(prefix) if spec.train_dir.startswith(prefix) else ""
    return requested or cluster_folder(cluster)


def existing(cluster: ClusterRef, states: Sequence[str] = model.LIVE) -> list[MachineState]:
    """The existing instances of a cluster in these states of EC2, the oldest first: those with its tag, and those that this computer
    knows by their ids, whatever has become of their tags.

    Raises:
        Unreachable: AWS does not respond.
    """
    hosts = ssh.read(cluster)
    names = {host.instance_id: name for name, host in hosts.hosts.items()}
    found = api.instances(ssh.region(cluster), id_tag(cluster), states, [*names])
    named = [(item, names.get(item.instance_id, "")) for item in found]
    return [replace(item, machine=name, is_manager=name == hosts.manager) if name else item for item, name in named]


def take_inventory(cluster: ClusterRef, spec: ClusterSpec) -> Ec2Inventory:
    """What AWS has for this cluster: types, images, a subnet, and the existing instances.

    Raises:
        SpecError: a type, an image or a network does not exist.
        Unreachable: AWS does not respond.
    """
    region_name, fleet = ssh.region(cluster), spec.ec2
    _refuse_no_type(spec)
    type_names = {job.ec2.instance_type for job in spec.training_jobs}
    types = api.instance_types(region_name, f"{spec.name}: ec2.instance_type", type_names)
    instances = {instance.machine: instance for instance in existing(cluster)}
    subnets = api.subnets(region_name, fleet.vpc_id, fleet.subnet_id)
    near = _near_volumes(region_name, spec, subnets, [instance.instance_id for instance in instances.values()])
    present = {instance.subnet_id for instance in instances.values()}
    offered = frozenset.intersection(*(instance_type.zones for instance_type in types.values()))
    subnet = _choose_subnet(spec, sorted(near, key=lambda subnet: subnet.subnet_id not in present), offered)
    images = _images(region_name, spec, types)
    return Ec2Inventory(region_name, subnet, types, images, instances, boot.read_failures(cluster))


def _images(region_name: str, spec: ClusterSpec, types: Mapping[str, InstanceType]) -> dict[str, str]:
    """Each requested image to its id."""
    images: dict[str, str] = {}
    for job in spec.training_jobs:
        instance_type = types[job.ec2.instance_type]
        image = requested_image(job.ec2.ami, instance_type)
        if image.startswith("/"):
            images[image] = images.get(image) or api.image_parameter(region_name, image)
        else:
            api.refuse_image(region_name, image, instance_type.architecture)
            images[image] = image
    return images


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
    users: dict[str, list[str]] = {}
    for request in requests:
        for volume in request.volumes:
            if volume.volume_id:
                users.setdefault(volume.volume_id, []).append(request.machine)
    for volume_id, names in users.items():
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


def plan_machines(spec: ClusterSpec, inventory: Ec2Inventory) -> list[Machine]:
    """The machines of the cluster: existing ones that stay, and those that are created or replaced."""
    return [
        _machine(request, spec.ec2, inventory, inventory.instances.get(request.machine))
        for request in machine_requests(spec, inventory.types, inventory.instances)
    ]


def _changes(request: MachineSpec, fleet: Ec2Spec, subnet_id: str, instance: MachineState) -> list[str]:
    """The requested properties in which an existing instance differs, and which cannot be updated in place."""
    disks = " ".join(volume.source for volume in request.volumes)
    pairs = (
        (instance.instance_type, request.instance_type.name),
        (_market(instance.spot), _market(request.spot)),
        (instance.image, request.image),
        (instance.files or "no efs", fleet.efs or "no efs"),
        (instance.disks or "no ebs_volumes", disks or "no ebs_volumes"),
        (instance.subnet_id or subnet_id, subnet_id),
        (f"{instance.access or PUBLIC} access", f"{fleet.connectivity} access"),
    )
    return [f"{present} -> {requested}" for present, requested in pairs if present != requested]


def _market(spot: bool) -> str:
    return "spot" if spot else "on-demand"


def _machine(
    request: MachineSpec, fleet: Ec2Spec, inventory: Ec2Inventory, instance: MachineState | None
) -> Ec2Machine:
    instance_type, failure = request.instance_type, inventory.failures.get(request.machine)
    # That of an earlier instance does not count.
    failed = failure.summary if failure and (instance is None or instance.instance_id == failure.instance_id) else ""
    changes: list[str] = []
    if instance:
        changes = [*filter(None, [failed]), *_changes(request, fleet, inventory.subnet.subnet_id, instance)]
    return Ec2Machine(
        name=request.machine,
        role=model.MASTER if request.is_manager else model.WORKER,
        provider=PROVIDER,
        region=inventory.region,
        cpus=instance_type.cpus,
        memory=instance_type.usable_memory,
        gpus=tuple(map(str, range(instance_type.gpus))),
        public_ip=instance.public_ip if instance else "",
        address=instance.private_ip if instance else "",
        labels={
            model.POOL: request.pool,
            "instance_type": instance_type.name,
            "zone": inventory.subnet.zone,
            "market": _market(request.spot),
        },
        kind=instance_type.name,
        jobs=request.jobs,
        exists=instance is not None,
        request=request,
        subnet=inventory.subnet,
        # One that stays keeps its image, even if the parameter has another value by now.
        image_id=instance.image_id if instance and not changes else inventory.images[request.image],
        instance=instance,
        changes=tuple(changes),
        failed=failed,
    )


def _refuse_no_type(spec: ClusterSpec) -> None:
    for job in spec.training_jobs:
        if not job.ec2.instance_type:
            remedy = 'Set it, for example to "m7i.large", or to "g6.xlarge" for a job with gpus.'
            raise SpecError(f"{spec.name}: ec2.instance_type", f"is missing for the job {job.name}", remedy)


def _near_volumes(
    region_name: str, spec: ClusterSpec, subnets: Sequence[Subnet], instance_ids: Sequence[str]
) -> list[Subnet]:
    """The subnets in the zone of the user's own volumes: a volume can only be attached within its zone."""
    where = f"{spec.name}: ec2.ebs_volumes"
    volumes = [volume.volume_id for job in spec.training_jobs for volume in job.ec2.ebs_volumes if volume.volume_id]
    volume_ids = list(dict.fromkeys(volumes))
    zone = api.volume_zone(region_name, where, volume_ids, instance_ids)
    near = [subnet for subnet in subnets if zone in ("", subnet.zone)]
    if zone and not near:
        wrong = f"{volume_ids[0]} is in {zone}, but the subnets are in: {_zones(subnets)}"
        raise SpecError(where, wrong, f"Choose a subnet in {zone}, or another volume.")
    return near


def _choose_subnet(spec: ClusterSpec, subnets: Sequence[Subnet], offered: frozenset[str]) -> Subnet:
    """The first subnet in a zone that offers all types."""
    for subnet in subnets:
        if subnet.zone in offered:
            return subnet
    types = ", ".join(sorted({job.ec2.instance_type for job in spec.training_jobs}))
    zones = ", ".join(sorted(offered)) or "no zone of the region"
    where = f"{spec.name}: ec2.{'subnet_id' if spec.ec2.subnet_id else 'instance_type'}"
    wrong = f"{types} are all available in {zones}, but the subnets are in: {_zones(subnets)}"
    raise SpecError(where, wrong, "Choose other types, or a subnet in another zone.")


def _zones(subnets: Sequence[Subnet]) -> str:
    return ", ".join(sorted({subnet.zone for subnet in subnets})) or "no zone"


def plan_lines(plan: Plan, surplus: Sequence[str]) -> list[str]:
    """One line for each machine that is created, replaced or terminated (`surplus`), with the tasks that restart."""
    lines = [line for machine in plan.needed_machines for line in _lines(plan, machine)]
    return [*lines, *_new_swarm(plan), *(f"{machine}: will be terminated" for machine in surplus)]


def _lines(plan: Plan, machine: Machine) -> list[str]:
    planned = ec2_machine(machine)
    if not planned.instance_id:
        again = f" again ({planned.failed})" if planned.failed else ""
        return [f"{machine.name}: will be created{again}: {_properties(machine)}"]
    if planned.changes:
        tasks = ", ".join(task.hostname for task in plan.tasks if task.machine == machine.name)
        return [
            f"{machine.name}: will be replaced ({', '.join(planned.changes)}); tasks that restart: {tasks or 'none'}"
        ]
    if planned.state in ("stopping", "stopped"):
        start = f"aws ec2 start-instances --instance-ids {planned.instance_id}"
        return [
            f"{machine.name}: is stopped and will not be started. Run `{start}`, or terminate it to have it replaced"
        ]
    return []


def _properties(machine: Machine) -> str:
    planned = ec2_machine(machine)
    labels = ", ".join(f"{key}={value}" for key, value in machine.labels.items())
    gpus = f"; {GPU}={len(machine.gpus)}" if machine.gpus else ""
    disks = f"; ebs_volumes: {', '.join(planned.disks)}" if planned.disks else ""
    return f"{machine.kind}, {planned.image_id}; {labels}{gpus}{disks}"


def _new_swarm(plan: Plan) -> list[str]:
    """The effect of a lost or replaced manager on the other machines."""
    staying = {machine.name for machine in plan.machines if ec2_machine(machine).can_stay}
    name = manager(plan.machines).name
    if not staying or name in staying or name in plan.unneeded:
        return []
    is_gone = not any(ec2_machine(machine).instance_id for machine in plan.machines if machine.name == name)
    lost = "; the record is restored from S3; checkpoints that were only on its disk are lost" if is_gone else ""
    return [f"{name}: manages the Swarm, so a new Swarm is created, and all tasks restart{lost}"]
