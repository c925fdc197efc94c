"""From AWS's inventory to the machines of a plan, each with its `PlannedInstance`."""

import secrets
from collections.abc import Iterable, Mapping, Sequence

from ....errors import SpecError
from ....paths import NO_ID, cluster_folder
from ....plan.scheduler import Machine
from ....spec.cluster import ClusterSpec
from ....spec.ec2 import PUBLIC, Ec2Spec
from ...base import ClusterRef
from ..aws import aws_api
from . import boot_failures, layout, ssh
from .layout import MachineRequest
from .model import (
    Ec2Inventory,
    Instance,
    InstanceType,
    PlannedInstance,
    Subnet,
    failure_of_instance,
    is_parameter,
    requested_image,
)
from .user_data import SHARED

PROVIDER = "Amazon"
_GENERATION_BYTES = 4


def planned_instance(machine: Machine) -> PlannedInstance:
    """The EC2 side of a machine in a plan."""
    if not isinstance(machine.made_of, PlannedInstance):
        raise TypeError(f"{machine.name} was not planned for EC2")
    return machine.made_of


def manager(machines: Iterable[Machine]) -> Machine:
    """The machine that manages the Swarm."""
    return next(machine for machine in machines if machine.role == aws_api.MASTER)


def lost(machines: Sequence[Machine]) -> frozenset[str]:
    """The machines that are gone; all of them, where the one that manages the Swarm is."""
    manager_exists = manager(machines).exists
    return frozenset(machine.name for machine in machines if not (machine.exists and manager_exists))


def tags(cluster: ClusterRef) -> dict[str, str]:
    """The tags of all AWS resources of a cluster, for people too."""
    values = {"project": cluster["project"], "stack": cluster["stack"], "cluster": cluster["name"]}
    named = {f"{aws_api.PREFIX}{key}": value for key, value in values.items()}
    return {**named, aws_api.CLUSTER_ID: cluster["id"], aws_api.OWNER: cluster["owner"]}


def id_tag(cluster: ClusterRef) -> dict[str, str]:
    """The tag that decides what belongs to a cluster; before it has an id, one that nothing has."""
    return {aws_api.CLUSTER_ID: cluster["id"] or NO_ID}


def shared_folder(cluster: ClusterRef, spec: ClusterSpec) -> str:
    """The cluster's folder on the shared file system: from `train_dir`, else one named by the cluster."""
    prefix = f"{SHARED}/"
    requested = spec.train_dir.removeprefix(prefix) if spec.train_dir.startswith(prefix) else ""
    return requested or cluster_folder(cluster)


def take_inventory(cluster: ClusterRef, spec: ClusterSpec) -> Ec2Inventory:
    """What AWS has for this cluster: types, images, a subnet, and the existing instances.

    Raises:
        SpecError: a type, an image or a network does not exist.
        Unreachable: AWS does not respond.
    """
    region_name, fleet = ssh.region(cluster), spec.ec2
    _refuse_no_type(spec)
    type_names = {job.instance.instance_type for job in spec.training_jobs}
    types = aws_api.instance_types(region_name, f"{spec.name}: ec2.instance_type", type_names)
    instances = {instance.machine: instance for instance in aws_api.instances(region_name, id_tag(cluster))}
    subnets = aws_api.subnets(region_name, fleet.vpc_id, fleet.subnet_id)
    near = _near_volumes(region_name, spec, subnets, [instance.instance_id for instance in instances.values()])
    present = {instance.subnet_id for instance in instances.values()}
    offered = frozenset.intersection(*(instance_type.zones for instance_type in types.values()))
    subnet = _choose_subnet(spec, sorted(near, key=lambda subnet: subnet.subnet_id not in present), offered)
    images = _images(region_name, spec, types)
    return Ec2Inventory(region_name, subnet, types, images, instances, boot_failures.read(cluster))


def _images(region_name: str, spec: ClusterSpec, types: Mapping[str, InstanceType]) -> dict[str, str]:
    """Each requested image to its id."""
    images: dict[str, str] = {}
    for job in spec.training_jobs:
        instance_type = types[job.instance.instance_type]
        image = requested_image(job.instance.ami, instance_type)
        if is_parameter(image):
            images[image] = images.get(image) or aws_api.image_parameter(region_name, image)
        else:
            aws_api.refuse_image(region_name, image, instance_type.architecture)
            images[image] = image
    return images


def plan_machines(spec: ClusterSpec, inventory: Ec2Inventory) -> list[Machine]:
    """The machines of the cluster: existing ones that stay, and those that are created or replaced."""
    return [
        _machine(request, spec.ec2, inventory, inventory.instances.get(request.machine))
        for request in layout.machine_requests(spec, inventory.types, inventory.instances)
    ]


def _changes(request: MachineRequest, fleet: Ec2Spec, subnet_id: str, instance: Instance) -> list[str]:
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


def _planned_instance(
    request: MachineRequest, fleet: Ec2Spec, inventory: Ec2Inventory, instance: Instance | None
) -> PlannedInstance:
    subnet = inventory.subnet
    failure = failure_of_instance(inventory.failures.get(request.machine), instance.instance_id if instance else "")
    failed = failure.summary if failure else ""
    changes: list[str] = []
    if instance:
        changes = [*([failed] if failed else []), *_changes(request, fleet, subnet.subnet_id, instance)]
    staying = instance if instance and not changes else None
    return PlannedInstance(
        instance_type=request.instance_type.name,
        # One that stays keeps its image, even if the parameter has another value by now.
        image_id=staying.image_id if staying else inventory.images[request.image],
        gpus=request.instance_type.gpus,
        spot=request.spot,
        root_volume_size=request.spec.root_volume_size,
        root_volume_type=request.spec.root_volume_type,
        subnet_id=subnet.subnet_id,
        vpc_id=subnet.vpc_id,
        vpc_cidrs=subnet.vpc_cidrs,
        generation=staying.generation if staying else secrets.token_hex(_GENERATION_BYTES),
        instance_id=instance.instance_id if instance else "",
        state=instance.state if instance else "",
        changes=tuple(changes),
        image=request.image,
        files=fleet.efs,
        volumes=request.volumes,
        access=fleet.connectivity,
        failed=failed,
    )


def _machine(request: MachineRequest, fleet: Ec2Spec, inventory: Ec2Inventory, instance: Instance | None) -> Machine:
    instance_type = request.instance_type
    return Machine(
        name=request.machine,
        role=aws_api.MASTER if request.is_manager else aws_api.WORKER,
        provider=PROVIDER,
        region=inventory.region,
        cpus=instance_type.cpus,
        memory=request.memory,
        gpus=tuple(map(str, range(instance_type.gpus))),
        public_ip=instance.public_ip if instance else "",
        address=instance.private_ip if instance else "",
        labels={
            layout.POOL: request.pool,
            "instance_type": instance_type.name,
            "zone": inventory.subnet.zone,
            "market": _market(request.spot),
        },
        kind=instance_type.name,
        jobs=request.jobs,
        exists=instance is not None,
        made_of=_planned_instance(request, fleet, inventory, instance),
    )


def _refuse_no_type(spec: ClusterSpec) -> None:
    for job in spec.training_jobs:
        if not job.instance.instance_type:
            remedy = 'Set it, for example to "m7i.large", or to "g6.xlarge" for a job with gpus.'
            raise SpecError(f"{spec.name}: ec2.instance_type", f"is missing for the job {job.name}", remedy)


def _near_volumes(
    region_name: str, spec: ClusterSpec, subnets: Sequence[Subnet], instance_ids: Sequence[str]
) -> list[Subnet]:
    """The subnets in the zone of the user's own volumes: a volume can only be attached within its zone."""
    where = f"{spec.name}: ec2.ebs_volumes"
    volumes = [
        volume.volume_id for job in spec.training_jobs for volume in job.instance.ebs_volumes if volume.volume_id
    ]
    volume_ids = list(dict.fromkeys(volumes))
    zone = aws_api.volume_zone(region_name, where, volume_ids, instance_ids)
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
    types = ", ".join(sorted({job.instance.instance_type for job in spec.training_jobs}))
    zones = ", ".join(sorted(offered)) or "no zone of the region"
    where = f"{spec.name}: ec2.{'subnet_id' if spec.ec2.subnet_id else 'instance_type'}"
    wrong = f"{types} are all available in {zones}, but the subnets are in: {_zones(subnets)}"
    raise SpecError(where, wrong, "Choose other types, or a subnet in another zone.")


def _zones(subnets: Sequence[Subnet]) -> str:
    return ", ".join(sorted({subnet.zone for subnet in subnets})) or "no zone"
