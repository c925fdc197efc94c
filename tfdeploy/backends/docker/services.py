"""A task, and the keeper, as services of a Swarm. Pure: from the props of a resource to what the Engine API takes.

The API's words: https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Service/operation/ServiceCreate.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...agent.states import TENSORBOARD, TENSORBOARD_PORT
from ...containers import HOST, OVERLAY
from ..base import KEEPER, RunProps, TaskProps
from . import names
from .mounts import shm, volume

TOKEN, AGENT, SECRETS = "/run/tfdeploy/token", "/run/tfdeploy/agent.pyz", "/run/tfdeploy/secrets"
"""Where a container finds what the Swarm keeps for it."""

RECORD = "/tfdeploy/record"
"""Where the keeper's volume is mounted."""

PYTHON = ("python3", "-I", "-S", AGENT)

MANAGER = "{manager}"
"""In the keeper's address, the address of the machine that manages the Swarm, where that is known only when it stands."""

TASK_PORT, KEEPER_PORT = 2222, 2220
"""On an overlay network every task has an address of its own, so all may have TensorFlow's usual port."""

_PORTS = {TENSORBOARD: TENSORBOARD_PORT}

TRAIN_MODE = "1777"
"""The keeper's user makes a run's folder in `train_dir`; the tasks' users write into it."""

_SECOND = 1_000_000_000
_RESTART_DELAY = 1 * _SECOND
_MARGIN = 30.0
_SHORTEST_STOP = 60.0
FOLDER = "/tmp/tfdeploy"


@dataclass(frozen=True)
class Service:
    """A service as it should be."""

    name: str
    labels: Mapping[str, str]
    template: Mapping[str, Any]


def task(props: TaskProps) -> Service:
    """The service of a task: its launcher in the task's image, started again by the Swarm unless it says that it is done."""
    container, cluster = props["container"], props["cluster"]
    on_overlay = container["network"] == OVERLAY
    settings = {
        **{key: props[key] for key in ("hostname", "job", "index", "memory")},
        "port": props["port"] or (_PORTS.get(props["job"], TASK_PORT) if on_overlay else 0),
        "keeper": _keeper_address(props),
        "token": TOKEN,
        "folder": FOLDER,
        "secrets": SECRETS,
        "host": props["hostname"] if on_overlay else "",
    }
    spec = {
        "Command": [*PYTHON, "launch", json.dumps(settings)],
        "Env": _environment(props),
        "Mounts": [*container["mounts"], *shm(container["shm_size"])],
        "StopGracePeriod": int(stop_seconds(props["grace"]) * _SECOND),
        "Secrets": _secrets(props["supplies"]),
        **_dropped(container.get("cap_drop", [])),
    }
    template = {
        "ContainerSpec": {**_container(props, props["hostname"]), **spec},
        "Resources": _resources(props),
        "RestartPolicy": {"Condition": "on-failure", "Delay": _RESTART_DELAY},
        "Placement": {"Constraints": [f"node.hostname=={props['machine']}"]},
        "Networks": _networks(container["network"], props["supplies"], props["hostname"]),
    }
    name = names.service(cluster, props["hostname"])
    return _service(props, name, {names.HOSTNAME: props["hostname"], names.MACHINE: props["machine"]}, template)


def keeper(props: RunProps) -> Service:
    """The service of the keeper, on the machine that manages the Swarm: it is reached through that one's engine."""
    container, cluster = props["container"], props["cluster"]
    host, _, port = _keeper_address(props).rpartition(":")
    where = volume("record", names.volume(cluster, names.RECORD), RECORD, names.labels(cluster))
    spec = {
        "Command": [*PYTHON, "keep", RECORD, f"{host}:{port}", TOKEN, TRAIN_MODE],
        "Env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "Mounts": [where, *container["mounts"]],
        "StopGracePeriod": int(_MARGIN * _SECOND),
        "Secrets": [_secret(props["supplies"]["token"], TOKEN)],
        "CapabilityDrop": ["ALL"],
        "CapabilityAdd": ["CAP_DAC_OVERRIDE"],  # `train_dir` may be a folder of somebody else's
        "User": "0",
    }
    template = {
        "ContainerSpec": {**_container(props, KEEPER), **spec},
        "Resources": {},
        "RestartPolicy": {"Condition": "any", "Delay": _RESTART_DELAY},
        "Placement": {"Constraints": [f"node.{container['post']}"]},
        "Networks": _networks(container["network"], props["supplies"], KEEPER),
    }
    return _service(props, names.service(cluster, KEEPER), {names.HOSTNAME: KEEPER, names.PORT: port}, template)


def _keeper_address(props: TaskProps | RunProps) -> str:
    address: str = props["container"]["keeper"]
    return address.replace(MANAGER, props["supplies"].get("manager", ""))


def stop_seconds(grace: float) -> float:
    """How long the engine waits before it kills a launcher, which keeps `grace` itself: longer, in steps of doubling, so
    that a little more of it changes no service."""
    seconds = _SHORTEST_STOP
    while seconds < grace + _MARGIN:
        seconds *= 2
    return seconds


def _service(props: TaskProps | RunProps, name: str, labels: Mapping[str, str], template: Mapping[str, Any]) -> Service:
    content = json.dumps([template, sorted(labels.items())], sort_keys=True)
    spec = {names.SPEC: hashlib.sha256(content.encode()).hexdigest()[:16]}
    container = template["ContainerSpec"]
    marked = {**template, "ContainerSpec": {**container, "Labels": {**container["Labels"], **spec}}}
    return Service(name, {**names.labels(props["cluster"]), **labels, **spec}, marked)


def _container(props: TaskProps | RunProps, hostname: str) -> dict[str, Any]:
    identity, name = props["supplies"]["agent"].split()
    return {
        "Image": props["supplies"].get(f"image-{props['container']['job']}") or props["container"]["image"],
        "Hostname": hostname,
        "User": props["container"]["user"],
        "Labels": dict(names.labels(props["cluster"])),
        "Configs": [{"ConfigID": identity, "ConfigName": name, "File": _file(AGENT)}],
    }


def _dropped(capabilities: Sequence[str]) -> dict[str, Any]:
    return {"CapabilityDrop": list(capabilities)} if capabilities else {}


def _environment(props: TaskProps) -> list[str]:
    """What the container's own environment gets; that of the run comes with the run."""
    unseen = [] if props["gpus"] else ["NVIDIA_VISIBLE_DEVICES=void"]
    return ["TFDEPLOY_MACHINE={{.Node.Hostname}}", *unseen]


def _resources(props: TaskProps) -> dict[str, Any]:
    limits = {"NanoCPUs": int(props["cpus"] * 1e9), "MemoryBytes": props["memory"]}
    some = {name: value for name, value in limits.items() if value}
    count = len(props["gpus"].split(",")) if props["gpus"] else 0
    kind = {"Kind": props["container"]["gpu_kind"], "Value": count}
    gpus = {"GenericResources": [{"DiscreteResourceSpec": kind}]} if count else {}
    return {"Limits": some, "Reservations": {**some, **gpus}}


def _networks(network: str, supplies: Mapping[str, str], alias: str) -> list[dict[str, Any]]:
    return [{"Target": HOST}] if network == HOST else [{"Target": supplies["network"], "Aliases": [alias]}]


def _secrets(supplies: Mapping[str, str]) -> list[dict[str, Any]]:
    own = {key.partition("-")[2]: value for key, value in supplies.items() if key.startswith("secret-")}
    users = [_secret(value, f"{SECRETS}/{name}") for name, value in sorted(own.items())]
    return [_secret(supplies["token"], TOKEN), *users]


def _secret(reference: str, path: str) -> dict[str, Any]:
    identity, name = reference.split()
    return {"SecretID": identity, "SecretName": name, "File": _file(path)}


def _file(path: str) -> dict[str, Any]:
    return {"Name": path, "UID": "0", "GID": "0", "Mode": 0o444}
