"""From AWS's inventory to the machines of a plan, and what the plan does to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ....errors import SpecError
from ....paths import NO_ID, cluster_folder
from ....plan.plan import Plan
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PUBLIC, Ec2Spec
from ...base import ClusterRef
from ..aws import api
from ..aws.api import ROLES_PATH
from . import boot, machine_count, model, ssh
from .model import Ec2Inventory, Ec2Machine, InstanceType, MachineSpec, MachineState, Subnet, requested_image
from .user_data import GPU, SHARED

PROVIDER = "Amazon"


def ec2_machine(machine: Machine) -> Ec2Machine:
    """The machine of a plan as one of EC2; a TypeError for one that was planned for another backend."""
    if not isinstance(machine, Ec2Machine):
        raise TypeError(f"{machine.name} was not planned for EC2")
    return machine


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


def plan_machines(spec: ClusterSpec, inventory: Ec2Inventory) -> list[Machine]:
    """The machines of the cluster: existing ones that stay, and those that are created or replaced."""
    return [
        _machine(request, spec.ec2, inventory, inventory.instances.get(request.machine))
        for request in machine_count.machine_requests(spec, inventory.types, inventory.instances)
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
