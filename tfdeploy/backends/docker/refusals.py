"""What a cluster of containers is refused for, before anything is made; and what is warned of."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path

from docker.errors import APIError, ImageNotFound

from ...containers import HOST, OVERLAY
from ...errors import SpecError, Unreachable
from ...plan import Plan
from ...spec import ClusterSpec
from ..refusing import refuse_requirements, refuse_same_ports, refuse_script
from . import differences, images, names
from .engine import Engine
from .mounts import Mount, clash
from .services import RECORD
from .swarm import Swarm

_OURS = ("/run/tfdeploy", "/tmp/tfdeploy", RECORD)


def refuse(
    swarm: Swarm, spec: ClusterSpec, plan: Plan, code_files: Sequence[str], standing: Mapping[str, str]
) -> list[str]:
    """Refuse what can be known not to work; the warnings. `standing` is hostname to machine, of the tasks that stand.

    Raises:
        SpecError: with the argument, what is wrong with it, and what would do.
    """
    refuse_script(spec, code_files)
    refuse_requirements(spec)
    if spec.engine.network == HOST:
        refuse_same_ports(plan)
    _refuse_manager(swarm)
    _refuse_subnet(swarm, spec)
    warnings = _refuse_images(swarm, spec, len(plan.machines))
    return [*warnings, *([] if spec.train_dir else differences.unshared(plan, standing))]


def refuse_mounts(where: str, mounts: Sequence[Mount]) -> None:
    """No two mounts may have one target, and none may hide what tfdeploy brings."""
    target = clash(mounts)
    if target:
        raise SpecError(where, f"{target} is mounted twice", "Give one of them another target.")
    for mount in mounts:
        target = mount["Target"].rstrip("/")
        if any(f"{target}/".startswith(f"{ours}/") or f"{ours}/".startswith(f"{target}/") for ours in _OURS):
            raise SpecError(where, f"{mount['Target']} is tfdeploy's own", "Choose another target.")


def refuse_folder(where: str, folder: str, engine: Engine) -> None:
    """A folder of this machine must be there; that of another machine is for its engine to say."""
    if engine.host.startswith("unix:") and not Path(folder).is_dir():
        raise SpecError(where, f"{folder} is no folder of this machine", "Make it, or name one that is there.")


def _refuse_manager(swarm: Swarm) -> None:
    """The keeper stands on the machine that the address leads to, so that one must take tasks."""
    mine = swarm.engine.swarm()["NodeID"]
    for node in swarm.engine.call(lambda api: api.nodes()):
        if node["ID"] == mine and node["Spec"]["Availability"] != "active":
            name = node["Description"]["Hostname"]
            wrong = f"{name}, where the keeper must stand, takes no tasks: its availability is {node['Spec']['Availability']}"
            remedy = f"Run `docker node update --availability active {name}`, and keep tasks away by `placement`."
            raise SpecError("docker_host", wrong, remedy)


def _refuse_subnet(swarm: Swarm, spec: ClusterSpec) -> None:
    """Docker takes two overlay networks with the same addresses, and then starts nothing on the second."""
    if not spec.engine.subnet:
        return
    wanted = IPv4Network(spec.engine.subnet)
    ours = names.labels(swarm.cluster).items()
    for network in swarm.engine.call(lambda api: api.networks(filters={"driver": OVERLAY})):
        pools = [pool["Subnet"] for pool in network["IPAM"]["Config"] or [] if "." in pool.get("Subnet", "")]
        foreign = not ours <= (network.get("Labels") or {}).items()
        if foreign and any(wanted.overlaps(IPv4Network(pool)) for pool in pools):
            wrong = f"{wanted} overlaps {', '.join(pools)} of the network {network['Name']}"
            raise SpecError(f"{spec.name}: subnet", wrong, "Choose other addresses, or none.")


def refuse_builds(spec: ClusterSpec, machines: int) -> None:
    """What is built must be there, and must reach all machines.

    Raises:
        SpecError: it is not, or does not.
    """
    has_builds = bool(spec.engine.build or spec.requirements)
    if has_builds and machines > 1 and not spec.engine.registry:
        wrong = f"is not given, and what is built must reach {machines} machines"
        raise SpecError(f"{spec.name}: registry", wrong, "Name a registry that all of them reach.")
    if spec.engine.build and not (Path(spec.engine.build) / "Dockerfile").is_file():
        wrong = f"there is no Dockerfile in {spec.engine.build}"
        raise SpecError(f"{spec.name}: build", wrong, "Name the folder that has it.")


def _refuse_images(swarm: Swarm, spec: ClusterSpec, machines: int) -> list[str]:
    refuse_builds(spec, machines)
    standing = {item["Spec"]["TaskTemplate"]["ContainerSpec"]["Image"] for item in swarm.services().values()}
    wanted = {job.name: images.named(spec, job) for job in spec.jobs if job.container.image or not spec.engine.build}
    return [
        warning
        for name in sorted(set(wanted.values()))
        if (warning := _refuse_image(swarm.engine, spec, name, strict=machines == 1 and name not in standing))
    ]


def _refuse_image(engine: Engine, spec: ClusterSpec, name: str, strict: bool) -> str:
    """Refuse an image that cannot be had; a warning where it may be: services stand on it, or other machines have it."""
    where = f"{spec.name}: image"
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
            remedy = "Mend its name, pull it, or `docker login` where it needs that."
            raise SpecError(where, f"{name!r} is not on the engine, and its registry says: {reason}", remedy) from None
        return f"image {name} is not on the manager, and its registry does not answer ({reason})"
    except Unreachable as error:
        return f"image {name}: its registry does not answer ({error})"
    return ""


def entry_point(engine: Engine, spec: ClusterSpec) -> tuple[str, ...]:
    """What the image itself would run.

    Raises:
        SpecError: the image is not there to be read, or names nothing.
    """
    name = images.named(spec, spec.jobs[0])
    where = f"{spec.name}: command"
    if spec.engine.build:
        raise SpecError(
            where, "is missing, and an image that is still to be built cannot be asked", "Give the command."
        )
    try:
        config = engine.call(lambda api: api.inspect_image(name))["Config"]
    except ImageNotFound:
        wrong = f"is missing, and the image {name!r} is not on the engine to be asked for its entry point"
        raise SpecError(where, wrong, "Give the command, or pull the image first.") from None
    command = [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]
    if not command:
        raise SpecError(where, f"is missing, and the image {name!r} has no entry point", "Give the command.")
    return tuple(command)
