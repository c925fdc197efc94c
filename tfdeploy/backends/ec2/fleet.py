"""What EC2 says becomes machines that tasks can be placed on, each with what it is made of."""

import secrets
from collections.abc import Iterable, Mapping
from typing import TypedDict, cast

import pulumi

from ...ec2 import account, catalog, disks, failures, layout, offers
from ...ec2.boot import SHARED
from ...ec2.facts import Facts, Instance, Subnet
from ...errors import SpecError
from ...instances import PUBLIC, FleetSpec
from ...placement import Machine
from ...spec import ClusterSpec
from ..base import Cluster
from ..docker import names
from ..folders import cluster_folder
from . import failing, reach

PROVIDER = "Amazon"
_LIFE_BYTES = 4


class Plot(TypedDict):
    """What a machine is made of (`Machine.made_of`)."""

    instance_type: str
    image_id: str
    gpus: int
    spot: bool
    root_volume_size: int
    root_volume_type: str
    subnet_id: str
    vpc_id: str
    vpc_cidrs: list[str]
    life: str
    """Which of the machines of this name it is: a new word when the one before is gone, which is what replaces it."""
    instance_id: str
    """The one that stands; empty for none."""
    state: str
    """What EC2 says of it."""
    changes: list[str]
    """Why it cannot stay, in words; empty when it can, or none stands."""
    image: str
    files: str
    disks: list[str]
    """What its image, its shared files and its further disks are asked for as."""
    access: str
    """How it is reached."""
    failed: str
    """That its last boot failed, in words; empty when it did not."""


def plot_of(machine: Machine) -> Plot:
    """What a machine is made of."""
    return cast(Plot, machine.made_of)


def kind_of(plot: Plot) -> failures.Kind:
    """What a failure of its boot is counted for."""
    return failures.Kind(plot["instance_type"], plot["image_id"], plot["subnet_id"])


def manager(machines: Iterable[Machine]) -> Machine:
    """The machine that manages the Swarm."""
    return next(machine for machine in machines if machine.role == account.MASTER)


def stays(machine: Machine) -> bool:
    """Whether the machine is there, and is as it should be."""
    plot = plot_of(machine)
    return bool(plot["instance_id"]) and not plot["changes"]


def region(spec: ClusterSpec) -> str:
    """The region: what is asked for, else the stack's for Pulumi's AWS provider, else what the AWS command would take.

    Raises:
        SpecError: none is known.
    """
    found = spec.fleet.region or pulumi.Config("aws").get("region") or account.default_region()
    account.refuse_no_region(found)
    return found


def tags(cluster: Cluster) -> dict[str, str]:
    """The tags that all of the cluster's things carry, and are found by."""
    return {
        f"{account.PREFIX}{key}": value
        for key, value in zip(("project", "stack", "cluster"), names.labels(cluster).values(), strict=True)
    }


def shared_folder(cluster: Cluster, spec: ClusterSpec) -> str:
    """The cluster's folder on the file system that all machines share: what `train_dir` names there, else one of its own."""
    given = spec.train_dir.removeprefix(f"{SHARED}/") if spec.train_dir.startswith(f"{SHARED}/") else ""
    return given or cluster_folder(cluster["project"], cluster["stack"], cluster["name"])


def facts(cluster: Cluster, spec: ClusterSpec) -> Facts:
    """All that a plan is made from.

    Raises:
        SpecError: a type, an image or a network is not there.
        Unreachable: AWS does not answer.
    """
    where, fleet = reach.region(cluster), spec.fleet
    _refuse_no_type(spec)
    types = offers.instance_types(
        where, f"{spec.name}: instance_type", {job.instance.instance_type for job in spec.crew}
    )
    images: dict[str, str] = {}
    for job in spec.crew:
        kind = types[job.instance.instance_type]
        name = catalog.image_name(job.instance.ami, kind)
        if catalog.is_parameter(name):
            images[name] = images.get(name) or account.parameter(where, name)
        else:
            account.refuse_image(where, name, kind.architecture)
            images[name] = name
    offered = frozenset.intersection(*(kind.zones for kind in types.values()))
    there = {one.machine: one for one in account.instances(where, tags(cluster))}
    stand_in = {one.subnet_id for one in there.values()}
    found = account.subnets(where, fleet.vpc_id, fleet.subnet_id)
    near = _near(where, spec, found, [one.instance_id for one in there.values()])
    subnet = _subnet(spec, sorted(near, key=lambda one: one.subnet_id not in stand_in), offered)
    return Facts(where, subnet, types, images, there, failing.read(cluster))


def machines(cluster: Cluster, spec: ClusterSpec, known: Facts) -> list[Machine]:
    """The machines of the cluster, those that stand and those that are to be made."""
    return [
        _machine(item, spec.fleet, known, known.instances.get(item.machine))
        for item in layout.wanted(spec, known.types, known.instances)
    ]


def _changes(item: layout.Wanted, fleet: FleetSpec, subnet_id: str, stands: Instance) -> list[str]:
    """What of a machine that stands is asked for otherwise now, and cannot be changed in place."""
    pairs = (
        (stands.instance_type, item.kind.name),
        (_market(stands.spot), _market(item.spot)),
        (stands.image, item.image),
        (stands.files or "no efs", fleet.efs or "no efs"),
        (stands.disks or "no ebs_volumes", " ".join(item.disks) or "no ebs_volumes"),
        (stands.subnet_id or subnet_id, subnet_id),
        (f"{stands.access or PUBLIC} access", f"{fleet.access} access"),
    )
    return [f"{before} gives way to {now}" for before, now in pairs if before != now]


def _market(spot: bool) -> str:
    return "spot" if spot else "on-demand"


def _machine(item: layout.Wanted, fleet: FleetSpec, known: Facts, stands: Instance | None) -> Machine:
    failure = failures.of(known.failures.get(item.machine), stands.instance_id if stands else "")
    failed = failure.words if failure else ""
    changes = [*([failed] if failed else []), *_changes(item, fleet, known.subnet.subnet_id, stands)] if stands else []
    stays = stands is not None and not changes
    made_of: Plot = {
        "instance_type": item.kind.name,
        # One that stays keeps its image, whatever the parameter names by now.
        "image_id": stands.image_id if stands and stays else known.images[item.image],
        "gpus": item.kind.gpus,
        "spot": item.spot,
        "root_volume_size": item.spec.root_volume_size,
        "root_volume_type": item.spec.root_volume_type,
        "subnet_id": known.subnet.subnet_id,
        "vpc_id": known.subnet.vpc_id,
        "vpc_cidrs": list(known.subnet.vpc_cidrs),
        "life": stands.life if stands and stays else secrets.token_hex(_LIFE_BYTES),
        "instance_id": stands.instance_id if stands else "",
        "state": stands.state if stands else "",
        "changes": changes,
        "image": item.image,
        "files": fleet.efs,
        "disks": list(item.disks),
        "access": fleet.access,
        "failed": failed,
    }
    return Machine(
        name=item.machine,
        role=account.MASTER if item.manages else account.WORKER,
        provider=PROVIDER,
        region=known.region,
        cpus=item.kind.cpus,
        memory=item.memory,
        gpus=tuple(map(str, range(item.kind.gpus))),
        public_ip=stands.public_ip if stands else "",
        address=stands.private_ip if stands else "",
        labels={
            layout.POOL: item.pool,
            "instance_type": item.kind.name,
            "zone": known.subnet.zone,
            "market": _market(item.spot),
        },
        kind=item.kind.name,
        jobs=item.jobs,
        made_of=cast(Mapping[str, object], made_of),
    )


def _refuse_no_type(spec: ClusterSpec) -> None:
    for job in spec.crew:
        if not job.instance.instance_type:
            wrong = f"is not given for {job.name}"
            remedy = 'Give one, such as "m7i.large", or "g6.xlarge" for a job with gpus.'
            raise SpecError(f"{spec.name}: instance_type", wrong, remedy)


def _near(where: str, spec: ClusterSpec, found: list[Subnet], instance_ids: list[str]) -> list[Subnet]:
    """Those of the subnets in which machines can have the user's own volumes."""
    key = f"{spec.name}: ebs_volumes"
    volumes = [volume.volume_id for job in spec.crew for volume in job.instance.ebs_volumes if volume.volume_id]
    names = list(dict.fromkeys(volumes))
    zone = disks.zone(where, key, names, instance_ids)
    near = [one for one in found if zone in ("", one.zone)]
    if zone and not near:
        zones = ", ".join(sorted({one.zone for one in found})) or "none"
        wrong = f"{names[0]} is in {zone}, and the subnet is in another zone than its volume: {zones}"
        raise SpecError(key, wrong, f"Choose a subnet of {zone}, or another volume.")
    return near


def _subnet(spec: ClusterSpec, found: list[Subnet], offered: frozenset[str]) -> Subnet:
    """The first whose zone has all types."""
    types = ", ".join(sorted({job.instance.instance_type for job in spec.crew}))
    for subnet in found:
        if subnet.zone in offered:
            return subnet
    zones = ", ".join(sorted({subnet.zone for subnet in found})) or "none"
    has = ", ".join(sorted(offered)) or "no zone of the region"
    remedy = "Choose other types, or a subnet of another zone."
    where = f"{spec.name}: {'subnet_id' if spec.fleet.subnet_id else 'instance_type'}"
    raise SpecError(where, f"{types} all together are offered in {has}; the subnets are in {zones}", remedy)
