"""From a spec to a plan on machines of EC2. Nothing here writes, except that an update stores what it has found out:
how this computer reaches the machines, and the record."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pulumi

from ...agent.control.end_policy import spent
from ...agent.launch.docker_env import NOTICE
from ...agent.model.run_state import FAILED, STOPPED, RunState, continues
from ...errors import SpecError, Unreachable
from ...plan.inventory import Inventory
from ...plan.plan import Change, Plan
from ...plan.retained_data import RetainedData
from ...plan.run_id import is_same_content
from ...plan.scheduler import Machine
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST, OVERLAY
from ...spec.ec2 import NEW
from ...spec.jobs import JobSpec
from .. import stack_config
from ..base import CONTROLLER, ClusterRef, DependencyRequest, MachineProvider, Rendered, Replacement
from ..container_layout import TRAIN_FOLDER
from ..docker import containers
from ..docker.labels import Services
from ..docker.planner import current_run, render_containers, service_changes, task_machines
from ..docker.swarm.services import MANAGER_PLACEHOLDER, ContainerSettings
from ..docker.swarm.swarm import Swarm
from ..docker.volumes import bind
from ..image_content import named_image_content
from ..move_checks import failed_run, refuse_without_checkpoint, without_checkpoint
from ..record_copy import RecordCopy, RecordUpdate, record_archive
from . import costs, record_bucket, validate
from .aws import account, api
from .machine import boot, machines, ssh, user_data
from .machine.model import ec2_machine
from .machine.user_data import GPU, SHARED, disk_folder

_ARROW = " -> "
_GIB = 1 << 30
_HOST_PORT = 20000
"""Where the controller listens on the host network; the Swarm has no other controller."""

_ATTEMPTS = 8
"""How often Pulumi's AWS provider should repeat a call that is throttled or finds no capacity. With its default of 25 an `up` waits
for 50 minutes before it reports missing capacity: https://github.com/hashicorp/terraform-provider-aws/issues/43193."""


@dataclass(frozen=True, kw_only=True)
class MachineInventory(Inventory):
    """What exists on EC2, and on the Swarm of the machines."""

    services: Services | None
    """Hostname to service; None where the Swarm does not exist, or does not respond."""
    unreachable: str
    """Why there are no `services`; empty where there are."""
    surplus: Sequence[str]
    """The machines that exist, but are not needed."""
    file_systems: Mapping[str, int]
    """The file systems that were created for the cluster: id to bytes."""
    spent: float = 0.0
    """What the machines of the cluster have cost, in USD."""


class Ec2Planner:
    """The contract is `backends.base.Planner`."""

    def __init__(self, machine_provider: MachineProvider) -> None:
        self._machine_provider = machine_provider

    def home(self, folder: str, spec: ClusterSpec, providers: Mapping[str, pulumi.ProviderResource]) -> str:
        """A cluster's home is its region, and the folder with which this computer reaches its machines."""
        provider = providers.get(account.PACKAGE)
        region = account.connect(spec, provider)
        account.compare(spec.name, provider, region)
        return ssh.home(region, folder)

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec, program_folder: Path) -> MachineInventory:
        """The machines and their Swarm; and the record, from S3 where the machines are gone."""
        if not spec.command:
            wrong = "is missing, and on ec2 the entry point of an image cannot be read before there is a machine"
            raise SpecError(f"{spec.name}: command", wrong, 'Give it, such as ["python", "train.py"].')
        folders = [_folder(cluster, spec, key) for key in ("train_dir", "data_dir")]
        needed, surplus = self._machine_provider.inspect(cluster, spec)
        (services, unreachable), file_systems = _services(cluster), _file_systems(cluster, spec)
        validate.refuse_file_systems(spec, file_systems)
        seen, run = _current_run(cluster, services or {})
        return MachineInventory(
            machines=tuple(needed),
            train_dir=folders[0],
            data_dir=folders[1],
            image=named_image_content(spec),
            task_machines=task_machines(services or {}),
            cost=costs.planned_cost(spec, needed),
            run_cost=costs.run_cost(spec, needed),
            run=run,
            results=RecordCopy(cluster).record.results(),
            lost=machines.lost(needed),
            place={"id": account.account_id(ssh.region(cluster)), "name": ""},
            services=services,
            unreachable=unreachable,
            surplus=surplus,
            file_systems=file_systems if spec.ec2.efs == NEW else {},
            spent=spent(run, seen) if run else 0.0,
        )

    def validate(
        self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: MachineInventory, code_files: Sequence[str]
    ) -> Sequence[str]:
        """Refuse what cannot work; the warnings."""
        validate.refuse_failed_boots(spec, plan, boot.read_failures(cluster))
        warnings = validate.refuse_plan(spec, plan, code_files)
        costs.refuse(spec, plan, inventory, inventory.spent)
        notices = containers.version_notices(spec, containers.installed_version())
        return [*warnings, *notices, *_unknown_changes(inventory), *record_bucket.warnings(cluster, spec)]

    def render(self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: MachineInventory) -> Rendered:
        """The containers, as on `docker`; what changes in machines and services; and what the machines cost."""
        rendered = _containers(cluster, spec, plan)
        services = inventory.services
        replaced = replacement_of(spec, plan, inventory)
        changes: list[Change | str] = [
            account.plan_line(ssh.region(cluster)),
            *machines.plan_lines(plan, inventory.surplus),
            *replacement_lines(plan, inventory, replaced),
            *retry_lines(plan.needed_machines),
            *costs.plan_lines(spec, plan),
            *(service_changes(plan, rendered, services) if services else ()),
        ]
        stored = (record_bucket.bucket_of(cluster).url, record_archive(cluster))
        retained = _retained_data(spec, plan, stored, inventory.file_systems)
        return replace(render_containers(rendered, changes), retained=retained, replacement=replaced)

    def register_dependencies(self, request: DependencyRequest[MachineInventory]) -> Mapping[str, Mapping[str, Any]]:
        """The machines, their Swarm, and what `docker` needs on it."""
        from ..docker.resources import EngineTarget, register_dependencies

        if not pulumi.runtime.is_dry_run():
            ssh.store(request.cluster)
            account.store(request.cluster)
            try:
                record_bucket.download(request.cluster)
            except record_bucket.RecordIncomplete as error:  # for ever, where its manager is gone
                pulumi.log.warn(f"{request.name}: {error}. The rest of the record is used.")
        swarm = self._machine_provider.register(request)
        manager = machines.manager(request.plan.needed_machines).name
        config = ["-F", str(ssh.config_file(request.cluster))]
        target = EngineTarget(swarm.swarm.apply(lambda _: f"ssh://{manager}"), swarm.swarm, config)
        return register_dependencies(request, target, swarm=swarm.swarm, manager=swarm.manager)


def replacement_of(spec: ClusterSpec, plan: Plan, inventory: Inventory) -> Replacement | None:
    """What is replaced, where the run must be brought to this computer before; None where it loses nothing.

    Raises:
        SpecError: the run could not continue on the new machines.
    """
    run = inventory.run
    replaced = _replaced(spec, plan, run) if run else []
    if run is None or not (replaced or continues(run)):
        return None
    keeps = _keeps_train_dir(spec, run, replaced)
    if replaced:
        _refuse_lost(spec, plan, run, keeps)
    return Replacement(
        tuple(ec2_machine(machine).instance_id for machine in replaced),
        keeps,
        is_same_content(run.spec, plan.run) or plan.run.resume_from == run.spec.id,
    )


def _replaced(spec: ClusterSpec, plan: Plan, run: RunState) -> list[Machine]:
    """The machines that are replaced, if the run loses its record or checkpoints with them. A manager that is gone, or did not boot,
    has no controller that could send them."""
    manager = ec2_machine(machines.manager(plan.machines))
    if not manager.instance_id or manager.failed or manager.state not in ("pending", "running"):
        return []
    replaced = [machine for machine in plan.needed_machines if _is_replaced(machine)]
    return replaced if manager.changes or not _keeps_train_dir(spec, run, replaced) else []


def _is_replaced(machine: Machine) -> bool:
    planned = ec2_machine(machine)
    return bool(planned.instance_id and planned.changes and not planned.failed)


def _keeps_train_dir(spec: ClusterSpec, run: RunState, replaced: list[Machine]) -> bool:
    """Whether new machines see the run's checkpoints: at a URL, or on the same shared file system or volumes of the user."""
    planned = [ec2_machine(machine) for machine in replaced]
    changed = {change.partition(_ARROW)[2] for machine in planned for change in machine.changes}
    if changed & {spec.ec2.efs or "no efs", *(" ".join(machine.disks) or "no ebs_volumes" for machine in planned)}:
        return "://" in run.spec.train_dir
    volumes = [pair for job in spec.training_jobs for pair in enumerate(job.ec2.ebs_volumes)]
    lasting = [disk_folder(number) for number, volume in volumes if volume.volume_id] + (
        [SHARED] if spec.ec2.efs else []
    )
    return "://" in run.spec.train_dir or any(run.spec.train_dir.startswith(f"{folder}/") for folder in lasting)


def _refuse_lost(spec: ClusterSpec, plan: Plan, run: RunState, keeps: bool) -> None:
    """Refuse a run that has failed, and checkpoints that would be lost."""
    if not is_same_content(run.spec, plan.run):
        return
    state = run.result.state if run.result else STOPPED
    if state == FAILED:
        raise failed_run(f"{spec.name}: ec2", run, "other machines")
    if state == STOPPED and not keeps:
        remedy = " Or set ec2.efs, or a URL as train_dir, before the next run."
        refuse_without_checkpoint(spec.name, run, "machines that are replaced", remedy)


def replacement_lines(plan: Plan, inventory: Inventory, replacement: Replacement | None) -> list[str]:
    """What happens with the run, in sentences."""
    if replacement is None or inventory.run is None:
        return []
    if not replacement.machines:
        return ["the run, which an earlier update has stopped, continues from its newest checkpoint"]
    copied = "its record is" if replacement.keeps_train_dir else "its record and newest checkpoint are"
    first = f"{copied} copied to this computer before machines are replaced"
    run = inventory.run
    if not is_same_content(run.spec, plan.run):
        return [f"run {run.spec.id} is stopped, {first}; then another run starts"]
    if run.result is not None and run.result.state != STOPPED:
        return [f"the run is finished: {first}, and nothing starts"]
    back = "to return, undo the change and run `pulumi up`"
    without = "" if replacement.keeps_train_dir else f"; {without_checkpoint('no machine is replaced')}"
    return [f"the run is stopped, {first}; it continues on the new ones from its newest checkpoint{without}; {back}"]


def retry_lines(machines: Sequence[Machine]) -> list[str]:
    """How to have missing capacity reported sooner, where machines are created and the stack does not set the number of attempts."""
    if stack_config.value(account.PACKAGE, "maxRetries") or all(ec2_machine(machine).can_stay for machine in machines):
        return []
    setting = f"`pulumi config set aws:maxRetries {_ATTEMPTS}`, or max_retries={_ATTEMPTS} of an explicit provider"
    return [f"a zone without capacity is reported after up to 50 minutes; after some minutes with {setting}"]


def _services(cluster: ClusterRef) -> tuple[Services | None, str]:
    """The services, or why there are none."""
    try:
        return Swarm(ssh.engine(cluster), cluster).services(), ""
    except (Unreachable, SpecError) as error:
        return None, str(error)


def _unknown_changes(inventory: MachineInventory) -> list[str]:
    """A warning where the manager exists and does not respond."""
    if not (inventory.unreachable and machines.manager(inventory.machines).exists):
        return []
    return [f"{inventory.unreachable}. The plan does not say which existing tasks the update changes"]


def _file_systems(cluster: ClusterRef, spec: ClusterSpec) -> Mapping[str, int]:
    is_needed = spec.ec2.efs == NEW or (spec.adopt and spec.ec2.efs)
    return api.file_systems(ssh.region(cluster), machines.id_tag(cluster)) if is_needed else {}


def _current_run(cluster: ClusterRef, services: Services) -> RecordUpdate:
    """The current run as the controller has it; where there is none, as the newer of bucket and copy has it."""
    if CONTROLLER in services:
        return RecordUpdate(time.time(), current_run(ssh.engine(cluster), cluster, services))
    return record_bucket.stored_run(cluster)


def _folder(cluster: ClusterRef, spec: ClusterSpec, key: str) -> str:
    """A path on the machines, or a URL; the shared file system's, else a volume, where no `train_dir` is given."""
    folder: str = getattr(spec, key)
    if folder or key != "train_dir":
        validate.refuse_folder(spec, key, folder)
        return folder
    return f"{SHARED}/{machines.shared_folder(cluster, spec)}" if spec.ec2.efs else TRAIN_FOLDER


def _containers(cluster: ClusterRef, spec: ClusterSpec, plan: Plan) -> dict[str, ContainerSettings]:
    """What the containers of tasks and controller have beyond what every task has."""
    manager = machines.manager(plan.machines).name
    address = (
        containers.OVERLAY_CONTROLLER if spec.container.network == OVERLAY else f"{MANAGER_PLACEHOLDER}:{_HOST_PORT}"
    )
    kinds = {machine.name: GPU for machine in plan.machines if machine.gpus}
    shared = replace(spec, train_dir=plan.run.train_dir) if spec.ec2.efs else spec
    mounted = replace(shared, jobs=tuple(map(_with_disks, spec.jobs)))
    placement = containers.ControllerPlacement(f"hostname=={manager}", address, kinds)
    rendered = containers.containers(cluster, mounted, plan, placement)
    return {name: container if name == CONTROLLER else _on_machine(container) for name, container in rendered.items()}


def _on_machine(container: ContainerSettings) -> ContainerSettings:
    """The container of a task, so that its launcher sees why the machine is about to end, and no task gets the machine's role.

    On the machine's own network NET_RAW would be enough to mark packets as the watchdog does.
    """
    shown = bind(user_data.SHOWN, str(NOTICE.parent), True)
    dropped = ("CAP_NET_RAW",) if container.network == HOST else ()
    return replace(container, mounts=(*container.mounts, shown), dropped_capabilities=dropped)


def _with_disks(job: JobSpec) -> JobSpec:
    """The job, so that its containers mount its machines' further disks."""
    disks = (f"{disk_folder(number)}:{volume.target}" for number, volume in enumerate(job.ec2.ebs_volumes))
    return replace(job, container=replace(job.container, volumes=(*job.container.volumes, *disks)))


def _retained_data(
    spec: ClusterSpec, plan: Plan, records: tuple[str, str], file_systems: Mapping[str, int]
) -> tuple[RetainedData, ...]:
    """What `pulumi destroy` keeps, and what it removes: the record in S3 and on this computer (`records`), the checkpoints, and the
    disks; `file_systems` are those that were created for the cluster, id to bytes."""
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
        for number, volume in enumerate(ec2_machine(machine).request.volumes)
    )


def _disks(plan: Plan) -> Iterator[RetainedData]:
    """The further disks. The user's own volumes are detached when their machine ends."""
    for machine in plan.machines:
        for volume in ec2_machine(machine).request.volumes:
            if volume.volume_id:
                yield RetainedData("volume", f"{volume.volume_id} of {machine.name}", True)
            elif machine.name not in plan.unneeded:
                yield RetainedData("disk", f"{volume.target} of {machine.name}", False, volume.size * _GIB)
