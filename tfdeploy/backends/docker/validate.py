"""Checks of a cluster of containers before anything is created: errors for what cannot work, and warnings."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from docker.errors import APIError, ImageNotFound

from ...errors import SpecError, Unreachable
from ...plan.plan import Plan
from ...spec.cluster import ClusterSpec
from ...spec.docker import HOST, OVERLAY
from ...spec.unknown_values import is_known
from ..image_content import named_image
from ..validate import refuse_elastic_on_machines, refuse_requirements, refuse_same_ports, refuse_script
from . import containers
from .engine.engine import Engine, is_open_tcp
from .swarm.swarm import Swarm


def refuse(
    swarm: Swarm, spec: ClusterSpec, plan: Plan, code_files: Sequence[str], task_machines: Mapping[str, str]
) -> list[str]:
    """Refuse what cannot work; the warnings. `task_machines` is hostname to machine of the existing tasks.

    Raises:
        SpecError: with the argument, what is wrong with it, and a remedy.
    """
    refuse_script(spec, code_files)
    refuse_requirements(spec)
    if spec.container.network == HOST:
        refuse_same_ports(plan)
        refuse_elastic_on_machines(spec, plan)
    _refuse_unavailable_manager(swarm)
    if spec.docker.encrypted and spec.container.network == HOST:
        wrong = 'the network "host" is not encrypted'
        raise SpecError(f"{spec.name}: docker.encrypted", wrong, f'Remove it, or use container.network="{OVERLAY}".')
    warnings = _refuse_images(swarm, spec, len(plan.machines))
    warnings += containers.version_notices(spec, containers.installed_version())
    if is_open_tcp(swarm.engine.host):
        warnings.append(
            f"docker.host ({swarm.engine.host}) is not protected by TLS: everybody on the way reads the cluster's secrets, and "
            "everybody who reaches that port is root there. Use ssh://, or DOCKER_TLS_VERIFY=1 with DOCKER_CERT_PATH"
        )
    return [*warnings, *([] if spec.train_dir else checkpoint_warnings(plan, task_machines))]


def refuse_folder(where: str, folder: str, engine: Engine) -> None:
    """A folder must exist on this machine; for an engine on another machine, the engine checks it."""
    if engine.host.startswith("unix:") and not Path(folder).is_dir():
        raise SpecError(where, f"the folder {folder} does not exist on this machine", "Create it, or change the path.")


def _refuse_unavailable_manager(swarm: Swarm) -> None:
    """The controller runs on the machine of `docker.host`, so that machine must be available."""
    manager_id = swarm.engine.swarm_info()["NodeID"]
    for node in swarm.engine.call(lambda api: api.nodes()):
        availability = node["Spec"]["Availability"]
        if node["ID"] == manager_id and availability != "active":
            name = node["Description"]["Hostname"]
            wrong = f"the availability of {name} is {availability}, so the controller cannot run there"
            remedy = (
                f"Run `docker node update --availability active {name}`. To keep tasks off it, set container.placement."
            )
            raise SpecError("docker.host", wrong, remedy)


def refuse_builds(spec: ClusterSpec, machines: int) -> None:
    """The Dockerfile must exist, and all machines must be able to pull the image.

    Raises:
        SpecError: otherwise.
    """
    has_builds = bool(spec.container.build or spec.requirements)
    if has_builds and machines > 1 and not spec.container.registry:
        wrong = f"is missing: {machines} machines need the image that is built from `build` or `requirements`"
        raise SpecError(
            f"{spec.name}: container.registry", wrong, "Set it to a registry that all machines can pull from."
        )
    if spec.container.build and not (Path(spec.container.build) / "Dockerfile").is_file():
        wrong = f"the folder {spec.container.build} does not have a Dockerfile"
        raise SpecError(f"{spec.name}: container.build", wrong, "Set it to the folder that has the Dockerfile.")


def _refuse_images(swarm: Swarm, spec: ClusterSpec, machines: int) -> list[str]:
    refuse_builds(spec, machines)
    in_use = {item["Spec"]["TaskTemplate"]["ContainerSpec"]["Image"] for item in swarm.services().values()}
    named = {named_image(spec, job) for job in spec.jobs if job.container.image or not spec.container.build}
    return [
        warning
        for name in sorted(filter(is_known, named))
        if (warning := _refuse_image(swarm.engine, spec, name, strict=machines == 1 and name not in in_use))
    ]


def _refuse_image(engine: Engine, spec: ClusterSpec, name: str, strict: bool) -> str:
    """A warning when an image may be missing; with `strict`, where no other machine could have it, an error."""
    where = f"{spec.name}: container.image"
    try:
        engine.call(lambda api: api.inspect_image(name))
        return ""
    except ImageNotFound:
        pass
    try:
        engine.call(lambda api: api.inspect_distribution(name))
    except APIError as error:
        reason = str(error.explanation or error)
        if strict:
            wrong = f"{name!r} is not on the engine and cannot be pulled: {reason}"
            remedy = "Correct the name, pull the image, or `docker login` if its registry requires that."
            raise SpecError(where, wrong, remedy) from None
        return f"image {name} is not on the manager and could not be found in its registry ({reason})"
    except Unreachable as error:
        return f"image {name} is not on the manager and its registry could not be reached ({error})"
    return ""


def entry_point(engine: Engine, spec: ClusterSpec) -> tuple[str, ...]:
    """The command of the image, for a cluster without a `command`.

    Raises:
        SpecError: the image is not on the engine, or does not have one.
    """
    name = named_image(spec, spec.jobs[0])
    where = f"{spec.name}: command"
    if spec.container.build:
        wrong = "is missing, and the entry point of an image that is not built yet is not known"
        raise SpecError(where, wrong, "Set the command.")
    try:
        config = engine.call(lambda api: api.inspect_image(name))["Config"]
    except ImageNotFound:
        wrong = f"is missing, and the entry point of the image {name!r}, which is not on the engine, is not known"
        raise SpecError(where, wrong, "Set the command, or pull the image.") from None
    command = [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]
    if not command:
        wrong = f"is missing, and the image {name!r} does not have an entry point"
        raise SpecError(where, wrong, "Set the command.")
    return tuple(command)


def checkpoint_warnings(plan: Plan, task_machines: Mapping[str, str]) -> list[str]:
    """A warning where each machine has its own volume for checkpoints, and the tasks are on several machines.

    `task_machines` is hostname to machine of the existing tasks.
    """
    planned = {task.hostname: task.machine for task in plan.tasks}
    if len({*planned.values(), *task_machines.values()}) < 2:
        return []
    removed = [f"{name} is removed from {machine}" for name, machine in task_machines.items() if name not in planned]
    added = [
        f"{name} is added on {machine}"
        for name, machine in planned.items()
        if task_machines and name not in task_machines
    ]
    moved = [
        f"{name} moves from {task_machines[name]} to {machine}"
        for name, machine in planned.items()
        if task_machines.get(name, machine) != machine
    ]
    reason = "train_dir is not set, so each machine has its own volume for checkpoints"
    remedy = "Set train_dir to a folder that all machines share"
    if moves := [*removed, *added, *moved]:
        effect = "a task that restarts finds only the checkpoints of its machine"
        return [f"{', '.join(moves)}. {reason}, and {effect}. {remedy}"]
    if len(set(planned.values())) < 2:
        return []
    return [f"{reason}, and no machine has all checkpoints. {remedy}"]
