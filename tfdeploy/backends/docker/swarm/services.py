"""The definitions of a cluster's services, from the props of its resources. Pure.

The Engine API's form: https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Service/operation/ServiceCreate.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

from ....agent.model.json_data import JsonData
from ....spec.docker import HOST, OVERLAY
from ...base import CONTROLLER, ClusterRef, RunProps, TaskProps, launcher_settings, limits_of
from ...container_layout import RECORD_FOLDER, SECRETS_FOLDER, TASK_FOLDER, TRAIN_DIR_MODE, default_port
from ..labels import (
    CLEANUP_IMAGE_LABEL,
    HOSTNAME_LABEL,
    MACHINE_LABEL,
    PORT_LABEL,
    RECORD_VOLUME,
    SPEC_HASH_LABEL,
    cluster_labels,
    own_volume_labels,
    service_name,
    stack_labels,
    volume_name,
)
from ..volumes import Mount, shm, volume

AGENT_FILE, TOKEN_FILE = "/run/tfdeploy/agent.pyz", "/run/tfdeploy/token"
"""Where the Swarm mounts its config and its secrets in a container."""

AGENT_COMMAND = ("python3", "-I", "-S", AGENT_FILE)

MANAGER_PLACEHOLDER = "{manager}"
"""In the controller's address: the address of the Swarm's manager, where that is known only after the manager was created."""

TASK_MODE = {"ReplicatedJob": {"MaxConcurrent": 1, "TotalCompletions": 1}}
"""The mode of a task's service. When a node has not responded for 15 s, a Swarm replaces the tasks of services in other modes, and ends
their containers when the node is back. It leaves those of jobs alone for 24 hours: swarmkit, `manager/orchestrator`. An update would
start the new container of a job beside the old one, so `Swarm` removes the service and creates it again."""

NO_TASK_MODE = {"ReplicatedJob": {"MaxConcurrent": 0, "TotalCompletions": 0}}
"""The mode of a task's service that is about to be removed."""

_OVERLAY_SYSCTLS = {"net.ipv4.tcp_retries2": "8"}
"""How often Linux sends unacknowledged data before it ends a connection: about 100 s, the least that RFC 1122 allows (4.2.3.5), in
place of 15 minutes. TensorFlow's gRPC has no limit of its own, so a ps waits that long for a worker whose machine has vanished."""

_SECOND = 1_000_000_000
_RESTART_DELAY = 1 * _SECOND
_STOP_MARGIN = 30.0
_MIN_STOP_TIMEOUT = 60.0


class Reference(TypedDict):
    """How the engine refers to an object that Pulumi created on it."""

    id: str
    name: str


class ContainerDependencies(TypedDict, total=False):
    """The objects that a container needs on its engine: what `TaskProps.dependencies` stores in Pulumi's state."""

    network: str
    agent: Reference
    token: Reference
    launcher_token: Reference
    """That of the task's launcher. The task runner creates it: it is not in a state."""
    secrets: dict[str, Reference]
    """Name of a variable to the secret that holds its value."""
    image: str
    """The image that was built for the job; missing where none is built."""
    swarm: str
    """The id of the Swarm: another Swarm needs its tasks created again."""
    manager: str
    """The private address of the machine that manages the Swarm."""


def dependencies_of(props: TaskProps | RunProps) -> ContainerDependencies:
    """The objects that a task's container, or the controller's, needs."""
    return cast(ContainerDependencies, props["dependencies"])


@dataclass(frozen=True)
class ContainerSettings(JsonData):
    """A task's container, or the controller's: what `TaskProps.container` and `RunProps.container` store in Pulumi's state."""

    job: str
    image: str
    """As the user named it; an image that was built for the job replaces it."""
    network: str
    """`overlay` or `host`."""
    controller_address: str
    """Where launchers connect to the controller."""
    user: str = ""
    mounts: tuple[Mount, ...] = ()
    shm_size: int = 0
    """Bytes; 0 for Docker's default."""
    gpu_kind: str = ""
    """The name of the machine's GPUs among its generic resources."""
    dropped_capabilities: tuple[str, ...] = ()
    constraint: str = ""
    """The placement constraint of the controller; tasks are placed by the plan."""
    cleanup_image: str = ""
    """Of the controller: the argument `docker.cleanup_image`."""


@dataclass(frozen=True)
class Service:
    """The desired definition of a service."""

    name: str
    labels: Mapping[str, str]
    template: Mapping[str, Any]
    mode: Mapping[str, Any] | None = None
    """None for a service with one replica."""


def task_service(props: TaskProps) -> Service:
    """The service of a task: its launcher in the task's image. The Swarm restarts it unless it exits with 0."""
    container, cluster = ContainerSettings.from_dict(props["container"]), props["cluster"]
    dependencies = dependencies_of(props)
    on_overlay = container.network == OVERLAY
    settings = {
        **launcher_settings(props),
        "port": props["port"] or (default_port(props["job"]) if on_overlay else 0),
        "controller": _controller_address(container, dependencies),
        "token": TOKEN_FILE,
        "folder": TASK_FOLDER,
        "secrets": SECRETS_FOLDER,
        "host": props["hostname"] if on_overlay else "",
    }
    spec = {
        "Command": [*AGENT_COMMAND, "launch", json.dumps(settings)],
        "Env": _environment(props),
        "Mounts": [*container.mounts, *shm(container.shm_size)],
        "StopGracePeriod": int(stop_timeout(props["grace"]) * _SECOND),
        "Secrets": _secrets(dependencies),
        **({"CapabilityDrop": list(container.dropped_capabilities)} if container.dropped_capabilities else {}),
        **({"Sysctls": _OVERLAY_SYSCTLS} if on_overlay else {}),
    }
    template = {
        "ContainerSpec": {**_container(props, container, props["hostname"]), **spec},
        "Resources": _resources(props, container.gpu_kind),
        "RestartPolicy": {"Condition": "on-failure", "Delay": _RESTART_DELAY},
        "Placement": {"Constraints": [f"node.hostname=={props['machine']}"]},
        "Networks": _networks(container.network, dependencies, props["hostname"]),
    }
    labels = {HOSTNAME_LABEL: props["hostname"], MACHINE_LABEL: props["machine"]}
    return replace(_service(props, service_name(cluster, props["hostname"]), labels, template), mode=TASK_MODE)


def controller_service(props: RunProps) -> Service:
    """The service of the controller, on the machine that manages the Swarm, because it is reached through that engine."""
    container, cluster = ContainerSettings.from_dict(props["container"]), props["cluster"]
    dependencies = dependencies_of(props)
    host, _, port = _controller_address(container, dependencies).rpartition(":")
    labels = own_volume_labels(cluster, RECORD_VOLUME)
    record = volume("record", volume_name(cluster, RECORD_VOLUME), RECORD_FOLDER, labels)
    spec = {
        "Command": [*AGENT_COMMAND, "controller", RECORD_FOLDER, f"{host}:{port}", TOKEN_FILE, TRAIN_DIR_MODE],
        "Env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "Mounts": [record, *container.mounts],
        "StopGracePeriod": int(_STOP_MARGIN * _SECOND),
        "Secrets": [_secret(dependencies["token"], TOKEN_FILE)],
        "CapabilityDrop": ["ALL"],
        "CapabilityAdd": ["CAP_DAC_OVERRIDE"],  # `train_dir` may be owned by another user
        "User": "0",
    }
    template = {
        "ContainerSpec": {**_container(props, container, CONTROLLER), **spec},
        "Resources": {},
        "RestartPolicy": {"Condition": "any", "Delay": _RESTART_DELAY},
        "Placement": {"Constraints": [f"node.{container.constraint}"]},
        "Networks": _networks(container.network, dependencies, CONTROLLER),
    }
    service_labels = {HOSTNAME_LABEL: CONTROLLER, PORT_LABEL: port}
    if container.cleanup_image:
        service_labels[CLEANUP_IMAGE_LABEL] = container.cleanup_image
    return _service(props, service_name(cluster, CONTROLLER), service_labels, template)


def _controller_address(container: ContainerSettings, dependencies: ContainerDependencies) -> str:
    return container.controller_address.replace(MANAGER_PLACEHOLDER, dependencies.get("manager", ""))


def token_secret_name(cluster: ClusterRef, hostname: str, token: str) -> str:
    """The name of the secret with a task's token. Another token has another name: the content of a secret cannot be changed."""
    return f"{service_name(cluster, hostname)}-token-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


def stop_timeout(grace: float) -> float:
    """How long the engine waits before it kills a launcher, which itself gives the program `grace` seconds.

    It is rounded up to a multiple of two of the minimum, so that a small change of `grace` does not update a service.
    """
    seconds = _MIN_STOP_TIMEOUT
    while seconds < grace + _STOP_MARGIN:
        seconds *= 2
    return seconds


def _service(props: TaskProps | RunProps, name: str, labels: Mapping[str, str], template: Mapping[str, Any]) -> Service:
    content = json.dumps([template, sorted(labels.items())], sort_keys=True)
    spec_hash = {SPEC_HASH_LABEL: hashlib.sha256(content.encode()).hexdigest()[:16]}
    container = template["ContainerSpec"]
    labelled = {**template, "ContainerSpec": {**container, "Labels": {**container["Labels"], **spec_hash}}}
    cluster = props["cluster"]
    return Service(name, {**cluster_labels(cluster), **stack_labels(cluster), **labels, **spec_hash}, labelled)


def _container(props: TaskProps | RunProps, container: ContainerSettings, hostname: str) -> dict[str, Any]:
    dependencies = dependencies_of(props)
    agent = dependencies["agent"]
    return {
        "Image": dependencies.get("image") or container.image,
        "Hostname": hostname,
        "User": container.user,
        "Labels": dict(cluster_labels(props["cluster"])),
        "Configs": [{"ConfigID": agent["id"], "ConfigName": agent["name"], "File": _file(AGENT_FILE)}],
    }


def _environment(props: TaskProps) -> list[str]:
    """The environment of the container; that of the program is part of the run."""
    no_gpus = [] if limits_of(props).gpus else ["NVIDIA_VISIBLE_DEVICES=void"]
    return ["TFDEPLOY_MACHINE={{.Node.Hostname}}", *no_gpus]


def _resources(props: TaskProps, gpu_kind: str) -> dict[str, Any]:
    limits = limits_of(props)
    sizes = {"NanoCPUs": int(limits.cpus * 1e9), "MemoryBytes": limits.memory}
    nonzero = {name: value for name, value in sizes.items() if value}
    kind = {"Kind": gpu_kind, "Value": limits.gpus}
    gpus = {"GenericResources": [{"DiscreteResourceSpec": kind}]} if limits.gpus else {}
    return {"Limits": nonzero, "Reservations": {**nonzero, **gpus}}


def _networks(network: str, dependencies: ContainerDependencies, alias: str) -> list[dict[str, Any]]:
    return [{"Target": HOST}] if network == HOST else [{"Target": dependencies["network"], "Aliases": [alias]}]


def _secrets(dependencies: ContainerDependencies) -> list[dict[str, Any]]:
    user_secrets = sorted(dependencies.get("secrets", {}).items())
    mounted = [_secret(reference, f"{SECRETS_FOLDER}/{name}") for name, reference in user_secrets]
    return [_secret(dependencies["launcher_token"], TOKEN_FILE), *mounted]


def _secret(reference: Reference, path: str) -> dict[str, Any]:
    return {"SecretID": reference["id"], "SecretName": reference["name"], "File": _file(path)}


def _file(path: str) -> dict[str, Any]:
    return {"Name": path, "UID": "0", "GID": "0", "Mode": 0o444}
