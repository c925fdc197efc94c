"""The Job of a task and the StatefulSet of the controller, from the props of their resources, and the volumes of pods. Pure.

A Job of one pod for each task: `podReplacementPolicy: Failed` starts no second pod before the first has ended, by the word of the API
server, so that two programs of one task never run (kubernetes#115844). The launcher starts its program again inside the container;
the back-off of the kubelet is for a launcher that fails.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, cast

from ...agent.model.json_data import JsonData
from ...agent.model.settings import Limits
from ...units import text_of_size
from ..base import CONTROLLER, ClusterRef, RunProps, TaskProps, launcher_settings, limits_of, shown_limits
from ..container_layout import (
    CONTROLLER_PORT,
    RECORD_FOLDER,
    SECRETS_FOLDER,
    TASK_FOLDER,
    TRAIN_DIR_MODE,
    default_port,
    refuse_targets,
    split_mount,
)
from .labels import (
    HASH_LABEL,
    HOSTNAME_LABEL,
    JOB_LABEL,
    QUEUE_LABEL,
    SETTINGS,
    cluster_labels,
    controller_pod,
    metadata,
    object_name,
    prefix,
)

if TYPE_CHECKING:  # whoever only observes a cluster needs no plan
    from ...plan.plan import Plan
    from ...spec.cluster import ClusterSpec

AGENT_FOLDER, TOKEN_FOLDER = "/run/tfdeploy/agent", "/run/tfdeploy/token"
AGENT_FILE, TOKEN_FILE = f"{AGENT_FOLDER}/agent.pyz", f"{TOKEN_FOLDER}/token"
_REMEDY = "Use CLAIM:/FOLDER[:ro] for a PersistentVolumeClaim of the namespace, or /FOLDER:/FOLDER[:ro] for a folder of the nodes."
AGENT_COMMAND = ("python3", "-I", "-S", AGENT_FILE)
CONTAINER = "tensorflow"
GPU = "nvidia.com/gpu"

_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"}
    for taint in ("not-ready", "unreachable")
]
"""Else Kubernetes deletes the pods of a node that has not reported for 5 minutes, and so ends healthy programs when it is back."""

_NODE = {"name": "TFDEPLOY_MACHINE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
_STOP_MARGIN, _MIN_STOP_SECONDS = 30, 60
_UNLIMITED = 2**31 - 1
_READABLE = 0o444


class PodDependencies(TypedDict, total=False):
    """The objects that pods mount: what `TaskProps.dependencies` stores in Pulumi's state."""

    agent: str
    """The name of the ConfigMap with the agent."""
    token: str
    """That of the Secret with the cluster's token, which only the controller mounts."""
    secrets: str
    """That of the Secret with the user's secrets."""


@dataclass(frozen=True)
class PodMount(JsonData):
    """A volume of a pod."""

    source: str
    """A folder of the node; the name of a claim; empty for a folder that lives as long as the pod."""
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class PodSettings(JsonData):
    """A pod beyond the limits of its task: what `TaskProps.container` and `RunProps.container` store in Pulumi's state."""

    image: str
    user: str = ""
    mounts: tuple[PodMount, ...] = ()
    shm_size: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)
    """Members of the pod's specification as Kubernetes has them: where it may run, and as what."""
    record: str = ""
    """Of the controller: the claim with its record; empty for a folder that lives as long as its pod."""
    queue: str = ""


def stop_seconds(grace: float) -> int:
    """How long Kubernetes waits before it kills a launcher, which gives its program `grace` seconds."""
    return max(_MIN_STOP_SECONDS, int(grace) + 1 + _STOP_MARGIN)


def shown_settings(settings: PodSettings, limits: Limits) -> dict[str, str]:
    """The settings of a task that a preview prints when they change."""
    volumes = [
        f"{item.source or 'emptyDir'}:{item.target}{':ro' if item.read_only else ''}" for item in settings.mounts
    ]
    texts = {
        "image": settings.image,
        "user": settings.user,
        "volumes": " ".join(volumes),
        "shm_size": text_of_size(settings.shm_size) if settings.shm_size else "",
        **shown_limits(limits),
    }
    members = {"labels": settings.labels, "annotations": settings.annotations, **settings.pod}
    return {**texts, **{name: json.dumps(value, sort_keys=True) for name, value in members.items() if value}}


def task_job(props: TaskProps) -> dict[str, Any]:
    """The Job of a task."""
    cluster, hostname = props["cluster"], props["hostname"]
    settings = PodSettings.from_dict(props["container"])
    dependencies = cast(PodDependencies, props["dependencies"])
    limits = limits_of(props)
    launcher = {
        **launcher_settings(props),
        "port": props["port"] or default_port(props["job"]),
        "controller": f"{controller_pod(cluster)}.{prefix(cluster)}:{CONTROLLER_PORT}",
        "token": TOKEN_FILE,
        "folder": TASK_FOLDER,
        "secrets": SECRETS_FOLDER,
        "host": f"{hostname}.{prefix(cluster)}",
        **({} if limits.gpus else {"gpus": ""}),
    }
    volumes = [
        _config("agent", dependencies["agent"], AGENT_FOLDER),
        _secret("token", object_name(cluster, hostname), TOKEN_FOLDER),
        *([_secret("secrets", dependencies["secrets"], SECRETS_FOLDER)] if dependencies.get("secrets") else []),
        *_mounts((*settings.mounts, PodMount("", TASK_FOLDER))),
        *_shared_memory(settings.shm_size),
    ]
    container = {
        **_container(settings, [*AGENT_COMMAND, "launch", json.dumps(launcher)], volumes),
        "env": [_NODE, *([] if limits.gpus else [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])],
        "resources": _resources(limits),
    }
    labels = {HOSTNAME_LABEL: hostname, JOB_LABEL: props["job"]}
    pod = {
        **_pod(settings, container, volumes),
        "restartPolicy": "OnFailure",
        "hostname": hostname,
        "subdomain": prefix(cluster),
        "terminationGracePeriodSeconds": stop_seconds(props["grace"]),
    }
    template = _template(props, settings, labels, pod)
    job_labels = {**labels, **({QUEUE_LABEL: settings.queue} if settings.queue else {})}
    shown = shown_settings(settings, limits)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(
            cluster, hostname, {**job_labels, HASH_LABEL: _hash(template)}, {SETTINGS: json.dumps(shown)}
        ),
        "spec": {"backoffLimit": _UNLIMITED, "podReplacementPolicy": "Failed", "template": template},
    }


def controller_set(props: RunProps) -> dict[str, Any]:
    """The StatefulSet of the controller: one pod, never two, and its name is known."""
    cluster = props["cluster"]
    settings = PodSettings.from_dict(props["container"])
    dependencies = cast(PodDependencies, props["dependencies"])
    command = ["controller", RECORD_FOLDER, f"0.0.0.0:{CONTROLLER_PORT}", TOKEN_FILE, TRAIN_DIR_MODE]
    volumes = [
        _config("agent", dependencies["agent"], AGENT_FOLDER),
        _secret("token", dependencies["token"], TOKEN_FOLDER),
        *_mounts((*settings.mounts, PodMount(settings.record, RECORD_FOLDER))),
    ]
    container = _container(settings, [*AGENT_COMMAND, *command], volumes)
    if not is_unprivileged(
        settings.user
    ):  # the tasks are root, or another user of their image, who may own `train_dir`
        root = {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}}
        container["securityContext"] |= root
    labels = {HOSTNAME_LABEL: CONTROLLER}
    pod = {**_pod(settings, container, volumes), "terminationGracePeriodSeconds": _STOP_MARGIN}
    template = _template(props, settings, labels, pod)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(cluster, CONTROLLER, {**labels, HASH_LABEL: _hash(template)}),
        "spec": {
            "replicas": 1,
            "serviceName": prefix(cluster),
            "podManagementPolicy": "Parallel",  # else a pod that cannot start keeps its successor from starting
            "selector": {"matchLabels": {**cluster_labels(cluster), **labels}},
            "template": template,
        },
    }


def secret(cluster: ClusterRef, suffix: str, values: Mapping[str, str]) -> dict[str, Any]:
    """A Secret."""
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(cluster, suffix), "type": "Opaque", "data": data}


def pod_of(owner: Mapping[str, Any]) -> dict[str, Any]:
    """A pod of a Job or a StatefulSet, with their name."""
    template = owner["spec"]["template"]
    meta = {**template["metadata"], "name": owner["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


Volume = tuple[dict[str, Any], dict[str, Any]]
"""A volume of a pod, and its mount in the container."""


def _volume(name: str, source: Mapping[str, Any], target: str, read_only: bool = True) -> Volume:
    return {"name": name, **source}, {"name": name, "mountPath": target, **({"readOnly": True} if read_only else {})}


def _config(name: str, config: str, target: str) -> Volume:
    return _volume(name, {"configMap": {"name": config, "defaultMode": _READABLE}}, target)


def _secret(name: str, secret: str, target: str) -> Volume:
    return _volume(name, {"secret": {"secretName": secret, "defaultMode": _READABLE}}, target)


def _mounts(mounts: tuple[PodMount, ...]) -> list[Volume]:
    """The user's volumes; one that is mounted twice is one volume of the pod."""
    return [
        _volume(f"volume-{number}", _source(mount), mount.target, mount.read_only)
        for number, mount in enumerate(mounts)
    ]


def _source(mount: PodMount) -> dict[str, Any]:
    if mount.source.startswith("/"):
        return {"hostPath": {"path": mount.source}}
    return {"persistentVolumeClaim": {"claimName": mount.source}} if mount.source else {"emptyDir": {}}


def _shared_memory(size: int) -> list[Volume]:
    source = {"emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}
    return [_volume("shm", source, "/dev/shm", read_only=False)] if size else []


def _container(settings: PodSettings, command: list[str], volumes: list[Volume]) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": settings.image,
        "command": command,
        "volumeMounts": [mount for _, mount in volumes],
        "securityContext": _container_security(settings.user),
    }


def is_unprivileged(user: str) -> bool:
    """Whether this is a user other than root: a number, or two with a colon."""
    return user.partition(":")[0].strip("0").isdigit()


def _container_security(user: str) -> dict[str, Any]:
    """What Pod Security `restricted` demands, as far as the user can have it. An image's own user may need capabilities of root."""
    number, _, group = user.partition(":")
    restricted = {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}} if is_unprivileged(user) else {}
    return {
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
        **restricted,
        **({"runAsUser": int(number)} if number.isdigit() else {}),
        **({"runAsGroup": int(group)} if group.isdigit() else {}),
    }


def _pod_security(user: str) -> dict[str, Any]:
    """Without root's rights, a user writes into claims as a member of a group that Kubernetes gives them."""
    if not is_unprivileged(user):
        return {}
    number, _, group = user.partition(":")
    return {"securityContext": {"fsGroup": int(group or number), "fsGroupChangePolicy": "OnRootMismatch"}}


def _pod(settings: PodSettings, container: dict[str, Any], volumes: list[Volume]) -> dict[str, Any]:
    tolerations = [*settings.pod.get("tolerations", ()), *_TOLERATIONS]
    return {
        **settings.pod,
        **_pod_security(settings.user),
        "tolerations": tolerations,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [volume for volume, _ in volumes],
    }


def _template(
    props: TaskProps | RunProps, settings: PodSettings, labels: dict[str, str], pod: dict[str, Any]
) -> dict[str, Any]:
    own = metadata(props["cluster"], "", labels)["labels"]
    meta: dict[str, Any] = {"labels": {**settings.labels, **own}}
    if settings.annotations:
        meta["annotations"] = dict(settings.annotations)
    return {"metadata": meta, "spec": pod}


def _resources(limits: Limits) -> dict[str, Any]:
    sizes = {
        **({"memory": str(limits.memory)} if limits.memory else {}),
        **({"cpu": f"{round(limits.cpus * 1000)}m"} if limits.cpus else {}),
        **({GPU: str(limits.gpus)} if limits.gpus else {}),
    }
    return {"limits": sizes, "requests": sizes} if sizes else {}


def _hash(template: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:16]


def mounts(spec: "ClusterSpec", plan: "Plan", volumes: Sequence[str], train_claim: str) -> tuple[PodMount, ...]:
    """The volumes of a job's pods. `data_dir` and `train_dir` are folders of the nodes, unless a volume has them.

    Raises:
        SpecError: a volume is not valid, or two have the same target.
    """
    where = f"{spec.name}: container.volumes"
    own = [PodMount(*split_mount(where, text, _REMEDY)) for text in volumes]
    data_dir, train_dir = plan.run.data_dir, plan.run.train_dir
    shared = [
        *([PodMount(data_dir, data_dir, True)] if is_folder(data_dir) and not covers(own, data_dir) else []),
        *_train_mount(spec, train_dir, train_claim, own),
    ]
    refuse_targets(where, [mount.target for mount in (*own, *shared)])
    return (*shared, *own)


def _train_mount(spec: "ClusterSpec", train_dir: str, train_claim: str, own: Sequence[PodMount]) -> list[PodMount]:
    if not is_folder(train_dir) or covers(own, train_dir):
        return []
    return [PodMount(train_dir if spec.train_dir else train_claim, train_dir)]


def is_folder(text: str) -> bool:
    """Whether this is a folder, and not a URL."""
    return text.startswith("/")


def covers(mounts: Sequence[PodMount], folder: str) -> bool:
    """Whether one of these volumes has the folder."""
    return any(f"{folder.rstrip('/')}/".startswith(f"{mount.target.rstrip('/')}/") for mount in mounts)
