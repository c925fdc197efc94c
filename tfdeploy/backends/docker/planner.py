"""The planner of a cluster on a Swarm: what its containers are, and what that changes in existing services. Nothing here writes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from ...agent.model.run_state import RunState
from ...agent.model.settings import Limits
from ...paths import absolute
from ...plan.inventory import Inventory
from ...plan.plan import Change, Plan, TaskPlan, grouped, updates
from ...plan.retained_data import RetainedData
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST, OVERLAY
from ...units import text_of_size
from ..base import CONTROLLER, ClusterRef, DependencyRequest, Rendered, shown_limits
from ..container_layout import TRAIN_FOLDER
from ..image_content import named_image_content
from ..record_copy import RecordCopy, record_archive
from . import containers, validate
from .addresses import DEFAULT_PREFIX, refuse_few_addresses, refuse_overlap
from .engine.controller_client import ControllerClient
from .engine.engine import Engine, engine_address
from .labels import MACHINE_LABEL, TRAIN_VOLUME, Services, volume_name
from .swarm import nodes
from .swarm.services import ContainerSettings
from .swarm.swarm import Swarm
from .volumes import Mount

if TYPE_CHECKING:
    import pulumi

RESTARTS = "restarts, one task at a time"
RESTARTS_ALL = "restarts all tasks at once, and the training resumes"


@dataclass(frozen=True, kw_only=True)
class DockerInventory(Inventory):
    """What exists on a Swarm."""

    services: Services
    placement: containers.ControllerPlacement
    volume_sizes: Mapping[str, int]
    """Bytes by name, of the volumes on the manager, as far as they are known."""


class DockerPlanner:
    """The contract is `backends.base.Planner`."""

    def home(self, folder: str, spec: ClusterSpec, providers: "Mapping[str, pulumi.ProviderResource]") -> str:
        """A cluster's home is the engine that the spec, or the environment, names."""
        return engine_address(spec.docker.host)

    def inspect(self, cluster: ClusterRef, spec: ClusterSpec, program_folder: Path) -> DockerInventory:
        """The nodes of the Swarm; those that accept no tasks now are not `ready`."""
        engine = Engine(cluster["home"])
        sizes: dict[str, int] = {}
        # Nothing waits for the sizes, in a preview as little as in an update without changes: what is late is not printed.
        Thread(target=lambda: sizes.update(engine.volume_sizes()), daemon=True).start()
        entry_point = () if spec.command else validate.entry_point(engine, spec)
        folders = [_folder(engine, spec, key, program_folder) for key in ("train_dir", "data_dir")]
        machines = tuple(nodes.machines(engine, cluster))
        services = Swarm(engine, cluster).services()
        return DockerInventory(
            machines=machines,
            train_dir=folders[0] or TRAIN_FOLDER,
            data_dir=folders[1],
            entry_point=entry_point,
            image=named_image_content(spec),
            task_machines=task_machines(services),
            run=current_run(engine, cluster, services),
            results=RecordCopy(cluster).record.results(),
            place=engine.place(),
            services=services,
            placement=containers.controller_placement(engine, cluster, spec),
            volume_sizes=dict(sizes),
        )

    def validate(
        self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: DockerInventory, code_files: Sequence[str]
    ) -> Sequence[str]:
        """Refuse what cannot work on this Swarm; the warnings."""
        swarm = Swarm(Engine(cluster["home"]), cluster)
        prefix = (swarm.engine.swarm_info().get("Cluster") or {}).get("SubnetSize") or DEFAULT_PREFIX
        refuse_few_addresses(spec, plan, prefix)
        networks = swarm.engine.call(lambda api: api.networks(filters={"driver": OVERLAY}))
        refuse_overlap(cluster, spec, networks)
        return validate.refuse(swarm, spec, plan, code_files, inventory.task_machines)

    def render(self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: DockerInventory) -> Rendered:
        """What the containers of tasks and controller have beyond what every task has, and which services change."""
        rendered = containers.containers(cluster, spec, plan, inventory.placement)
        keeps, archive = spec.container.retain_volumes, record_archive(cluster)
        retained = retained_data(
            cluster, plan, rendered, keeps, archive, inventory.volume_sizes, inventory.place["name"]
        )
        changes = service_changes(plan, rendered, inventory.services)
        return replace(render_containers(rendered, changes), retained=retained)

    def register_dependencies(self, request: DependencyRequest[DockerInventory]) -> Mapping[str, Mapping[str, Any]]:
        """Network, secrets, the agent and images, with Pulumi's Docker provider."""
        from .resources import EngineTarget, register_dependencies

        home = request.cluster["home"]
        return register_dependencies(request, EngineTarget(home, home))


def render_containers(
    containers_by_hostname: Mapping[str, ContainerSettings], changes: Sequence[Change | str]
) -> Rendered:
    """The settings of all containers, and what changes."""
    tasks = dict(containers_by_hostname)
    return Rendered(controller=tasks.pop(CONTROLLER), tasks=tasks, changes=tuple(changes))


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


def current_run(engine: Engine, cluster: ClusterRef, services: Services) -> RunState | None:
    """The current run as the controller has it; as the copy of the record has it where there is no controller."""
    if CONTROLLER in services:
        return ControllerClient(engine, cluster).last_known_run()
    return RecordCopy(cluster).record.current()


def task_machines(services: Services) -> dict[str, str]:
    """Hostname to machine, of the tasks that have a service."""
    return {
        hostname: labels[MACHINE_LABEL]
        for hostname, service in services.items()
        if MACHINE_LABEL in (labels := service["Spec"]["Labels"])
    }


def _folder(engine: Engine, spec: ClusterSpec, key: str, program_folder: Path) -> str:
    """An absolute path, which is mounted at the same path, or a URL; empty where none is asked for."""
    folder = absolute(getattr(spec, key), str(program_folder))
    if folder and "://" not in folder:
        validate.refuse_folder(f"{spec.name}: {key}", folder, engine)
    return folder


def service_changes(plan: Plan, containers: Mapping[str, ContainerSettings], services: Services) -> tuple[Change, ...]:
    """The changes of existing services; one for all tasks that change in the same way."""
    changes: list[Change] = []
    for task in plan.tasks:
        if task.hostname in services:
            settings = task_settings(task, containers[task.hostname], services[task.hostname]["Spec"])
            before, after = settings["network"]
            changes += updates(task.hostname, settings, RESTARTS if before == after else RESTARTS_ALL)
    return grouped(changes)


def task_settings(task: TaskPlan, container: ContainerSettings, spec: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The settings of one task: those of its service, and the planned ones."""
    template = spec["TaskTemplate"]
    current = template["ContainerSpec"]
    launcher = json.loads(current["Command"][-1])
    before, after = shown_limits(Limits.from_dict(launcher["limits"])), shown_limits(task.limits)
    is_on_overlay = any(network.get("Aliases") for network in template.get("Networks") or [])
    shm = [mount for mount in current.get("Mounts", []) if mount["Target"] == "/dev/shm"]
    volumes = [mount for mount in current.get("Mounts", []) if mount not in shm]
    shm_size = shm[0].get("TmpfsOptions", {}).get("SizeBytes", 0) if shm else 0
    return {
        "image": (current["Image"].partition("@")[0], container.image),
        "user": (current.get("User", ""), container.user),
        "volumes": (_volumes_text(volumes), _volumes_text(container.mounts)),
        "shm_size": (_size_text(shm_size), _size_text(container.shm_size)),
        **{name: (text, after[name]) for name, text in before.items()},
        "machine": (spec["Labels"].get(MACHINE_LABEL, ""), task.machine),
        "network": (OVERLAY if is_on_overlay else HOST, container.network),
    }


def _size_text(size: int) -> str:
    return text_of_size(size) if size else ""


def _volumes_text(mounts: Sequence[Mount]) -> str:
    return " ".join(map(_mount_text, mounts))


def _mount_text(mount: Mount) -> str:
    """A mount as in `volumes`, with those of its options that matter to a task."""
    driver = (mount.get("VolumeOptions") or {}).get("DriverConfig") or {}
    options = {**driver.get("Options", {}), **mount.get("TmpfsOptions", {})}
    suffix = "".join(f",{key}={value}" for key, value in sorted(options.items()))
    return f"{mount.get('Source') or mount['Type']}:{mount['Target']}{':ro' if mount.get('ReadOnly') else ''}{suffix}"
