"""The planner of a cluster on a Swarm. Nothing here writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agent.run_state import RunState
from ...paths import absolute
from ...plan.change import Change
from ...plan.inventory import Inventory
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import OVERLAY
from ..base import CONTROLLER, ClusterRef, DependencyRequest, Rendered
from ..image_content import named_image_content
from ..record_copy import RecordCopy, record_archive
from . import containers, diff, validate
from .addresses import OverlayNetworks, network_change, network_subnet, overlay_networks
from .container_settings import ContainerSettings
from .engine.controller_client import ControllerClient
from .engine.engine import Engine, engine_address
from .labels import MACHINE_LABEL
from .swarm import nodes
from .swarm.services import Services
from .swarm.swarm import Swarm
from .volumes.retained_volumes import retained_data
from .volumes.volume_sizes import VolumeSizes

if TYPE_CHECKING:
    import pulumi


@dataclass(frozen=True, kw_only=True)
class DockerInventory(Inventory):
    """What exists on a Swarm."""

    services: Services
    placement: containers.ControllerPlacement
    networks: OverlayNetworks
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
        sizes = VolumeSizes(engine)
        entry_point = () if spec.command else validate.entry_point(engine, spec)
        folders = [_folder(engine, spec, key, program_folder) for key in ("train_dir", "data_dir")]
        machines = tuple(nodes.machines(engine, cluster))
        services = Swarm(engine, cluster).services()
        return DockerInventory(
            machines=machines,
            train_dir=folders[0] or containers.TRAIN_FOLDER,
            data_dir=folders[1],
            entry_point=entry_point,
            image=named_image_content(spec),
            task_machines=task_machines(services),
            run=current_run(engine, cluster, services),
            results=RecordCopy(cluster).record.results(),
            place=engine.place(),
            services=services,
            placement=containers.controller_placement(engine, cluster, spec),
            networks=_networks(engine, cluster, is_adopted=bool(spec.adopt)),
            volume_sizes=sizes.known(),
        )

    def validate(
        self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: DockerInventory, code_files: Sequence[str]
    ) -> Sequence[str]:
        """Refuse what cannot work on this Swarm; the warnings."""
        swarm = Swarm(Engine(cluster["home"]), cluster)
        validate.refuse_subnet(spec, plan, inventory.networks)
        return validate.refuse(swarm, spec, plan, code_files, inventory.task_machines)

    def render(self, cluster: ClusterRef, spec: ClusterSpec, plan: Plan, inventory: DockerInventory) -> Rendered:
        """What the containers of tasks and controller have beyond what every task has, and which services change."""
        rendered = containers.containers(cluster, spec, plan, inventory.placement)
        keeps, archive = spec.container.retain_volumes, record_archive(cluster)
        retained = retained_data(
            cluster, plan, rendered, keeps, archive, inventory.volume_sizes, inventory.place["name"]
        )
        larger = network_change(plan, inventory.networks, network_subnet(spec, plan, inventory.networks))
        changes: list[Change | str] = [*diff.changes(plan, rendered, inventory.services), *([larger] if larger else [])]
        return replace(render_containers(rendered, changes), retained=retained)

    def register_dependencies(self, request: DependencyRequest[DockerInventory]) -> Mapping[str, Mapping[str, Any]]:
        """Network, secrets, the agent and images, with Pulumi's Docker provider."""
        from .resources import EngineTarget, register_dependencies

        home = request.cluster["home"]
        subnet = network_subnet(request.spec, request.plan, request.inventory.networks)
        return register_dependencies(request, EngineTarget(home, home, subnet=subnet))


def render_containers(
    containers_by_hostname: Mapping[str, ContainerSettings], changes: Sequence[Change | str]
) -> Rendered:
    """The settings of all containers, and what changes."""
    tasks = dict(containers_by_hostname)
    return Rendered(controller=tasks.pop(CONTROLLER), tasks=tasks, changes=tuple(changes))


def current_run(engine: Engine, cluster: ClusterRef, services: Services) -> RunState | None:
    """The current run as the controller has it; as the copy of the record has it where there is no controller."""
    if CONTROLLER in services:
        return ControllerClient(engine, cluster).last_known_run()
    return RecordCopy(cluster).record.current()


def _networks(engine: Engine, cluster: ClusterRef, is_adopted: bool) -> OverlayNetworks:
    networks = engine.call(lambda api: api.networks(filters={"driver": OVERLAY}))
    return overlay_networks(cluster, engine.swarm_info().get("Cluster") or {}, networks, is_adopted)


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
