"""One replica type of a TFJob: the settings of a job, and what is the cluster's. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import SpecError
from ...units import quantity
from .manifest_fields import Fields

_CONTAINER = "tensorflow"
"""The name that the operator requires."""

_PORT = "tfjob-port"
_GPU = "nvidia.com/gpu"
_RESERVED = re.compile("TF_CONFIG|CUDA_VISIBLE_DEVICES|TFDEPLOY_.*")
_SHM = "/dev/shm"
_KUBERNETES_VARIABLE = re.compile(r"\$\([A-Za-z_]")

RESTARTS: Mapping[str, Mapping[str, Any]] = {
    "": {"maximum": 0},
    "Never": {"maximum": 0},
    "OnFailure": {"on": ["any"]},
    "Always": {"on": ["any"]},
    "ExitCode": {"on": ["signal", "128-255"]},
}
"""`restartPolicy` to `restart`. A task that has succeeded is never restarted."""


@dataclass
class ReplicaType:
    """What one replica type becomes."""

    job: str
    count: int
    command: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    """Members of `jobs.JOB`."""
    secrets: list[str] = field(default_factory=list)
    service_account: str = ""
    image_pull_secrets: list[str] = field(default_factory=list)
    grace_seconds: int = 0


def read_replica_type(job: str, replica: Fields) -> ReplicaType:
    """A replica type.

    Raises:
        SpecError: it is not valid.
    """
    made = ReplicaType(job, replica.take("replicas", int) if replica.has("replicas") else 1)
    policy = replica.take("restartPolicy")
    if policy not in RESTARTS:
        replica.note("restartPolicy", f"{policy!r} is unknown; failed tasks are not restarted")
    made.settings["restart"] = dict(RESTARTS.get(policy, RESTARTS["Never"]))
    template = replica.child("template")
    meta, pod = template.child("metadata"), template.child("spec")
    kubernetes = {"labels": meta.mapping("labels"), "annotations": meta.mapping("annotations")}
    meta.close()
    for container in pod.children("containers"):
        if container.take("name") == _CONTAINER:
            _read_container(made, pod, container)
        else:
            container.note("", "another container than `tensorflow`; start its program in the same container")
    _read_pod(made, pod, kubernetes)
    for part in (pod, template, replica):
        part.close()
    return made


def _read_pod(made: ReplicaType, pod: Fields, kubernetes: dict[str, Any]) -> None:
    kubernetes["node_selector"] = pod.mapping("nodeSelector")
    kubernetes["tolerations"] = [_toleration(item) for item in pod.children("tolerations")]
    kubernetes["priority_class"] = pod.take("priorityClassName")
    _set(made.settings, "kubernetes", {key: value for key, value in kubernetes.items() if value})
    account, former = pod.take("serviceAccountName"), pod.take("serviceAccount")
    made.service_account = account or former
    made.image_pull_secrets = [item.take("name") for item in pod.children("imagePullSecrets")]
    made.grace_seconds = pod.take("terminationGracePeriodSeconds", int)
    _set_user(made, pod.child("securityContext"))


def _toleration(item: Fields) -> str:
    """As `kubectl taint` writes it."""
    key, value, effect = item.take("key") or "*", str(item.take("value", object) or ""), item.take("effect")
    is_equal = item.take("operator") in ("", "Equal") and key != "*"
    item.path = item.path if not item.has("tolerationSeconds") else f"{item.path} ({key})"
    item.close()
    return f"{key}{f'={value}' if is_equal else ''}{f':{effect}' if effect else ''}"


def _read_container(made: ReplicaType, pod: Fields, container: Fields) -> None:
    command, args = container.texts("command"), container.texts("args")
    if args and not command:
        container.note("args", "the entry point of the image is not known here; write it before them")
    made.command = _with_absolute_script(container, [*command, *args])
    if any(_KUBERNETES_VARIABLE.search(part) for part in made.command):
        container.note("command", 'no "$(NAME)" is replaced; use ["sh", "-c", "… $NAME"]')
    own: dict[str, Any] = {"image": container.take("image")}
    volumes = {volume.take("name"): volume for volume in pod.children("volumes")}
    _read_resources(made, container.child("resources"))
    mounts = container.children("volumeMounts")
    own["volumes"] = [text for mount in mounts if (text := _volume(made, mount, volumes, own))]
    for volume in volumes.values():
        volume.close()
    made.settings["container"] = {key: value for key, value in own.items() if value}
    _set_user(made, container.child("securityContext"))
    _read_env(made, container)
    ports = [port for port in container.children("ports") if port.take("name") != _PORT]
    for port in ports:
        port.note("", "use `tfdeploy port-forward`")
    container.close()


def _with_absolute_script(container: Fields, command: list[str]) -> list[str]:
    """The command with the script's path in the image: a relative one is of `code`."""
    is_relative = (
        len(command) > 1 and re.fullmatch("python[0-9.]*", command[0]) and re.fullmatch("[^/].*[.]py", command[1])
    )
    if not is_relative:
        return command
    folder = container.take("workingDir")
    if not folder:
        container.note(
            "command", f"{command[1]} is a path in the image; make it absolute, or ship its folder by `code`"
        )
        return command
    container.note("workingDir")
    return [command[0], f"{folder.rstrip('/')}/{command[1]}", *command[2:]]


def _set_user(made: ReplicaType, context: Fields) -> None:
    user, group = (str(context.take(name, int)) if context.has(name) else "" for name in ("runAsUser", "runAsGroup"))
    if user:  # the container's, else the pod's
        made.settings.setdefault("container", {}).setdefault("user", f"{user}:{group}" if group else user)
    elif group:
        context.note("runAsGroup", "it needs runAsUser too")
    context.close("allowPrivilegeEscalation")


def _volume(made: ReplicaType, mount: Fields, volumes: Mapping[str, Fields], own: dict[str, Any]) -> str:
    """A mount as an item of `container.volumes`; empty where there is none of its kind."""
    name, target, read_only = mount.take("name"), mount.take("mountPath"), mount.take("readOnly", bool)
    volume = volumes.get(name)
    if volume is None:
        mount.note("", f"there is no volume {name!r}")
        return ""
    if mount.has("subPath"):
        mount.close()
        return ""
    mount.close()
    if volume.has("persistentVolumeClaim"):
        claim = volume.child("persistentVolumeClaim")
        source = claim.take("claimName")
        read_only = read_only or claim.take("readOnly", bool)
    elif volume.has("hostPath"):
        source = volume.child("hostPath").take("path")
    elif target == _SHM and volume.has("emptyDir"):
        limit = volume.child("emptyDir").take("sizeLimit", object)
        own["shm_size"] = _size(volume, str(limit)) if isinstance(limit, (str, int)) else ""
        if not own["shm_size"]:
            volume.note("emptyDir.sizeLimit", 'set container={"shm_size": …}: Kubernetes\' default of 64 MiB applies')
        return ""
    else:
        return ""
    return f"{source}:{target}{':ro' if read_only else ''}"


def _read_env(made: ReplicaType, container: Fields) -> None:
    env = {}
    for variable in container.children("env"):
        name = variable.take("name")
        if _RESERVED.fullmatch(name):
            variable.note("", f"tfdeploy sets {name}")
            continue
        source = variable.child("valueFrom")
        if source.has("secretKeyRef"):
            source.take("secretKeyRef", dict)
            made.secrets.append(name)
            if not name.isupper():
                variable.note(
                    "", f"{name} is a file in $TFDEPLOY_SECRETS, and no variable: its name is not in capitals"
                )
        elif not source.has("configMapKeyRef") and not source.has("fieldRef") and not source.has("resourceFieldRef"):
            env[name] = str(variable.take("value", object) if variable.has("value") else "")
        source.close()
        variable.close()
    _set(made.settings, "env", env)


def _read_resources(made: ReplicaType, resources: Fields) -> None:
    limits, requests = resources.mapping("limits"), resources.mapping("requests")
    cpus = requests.get("cpu") or limits.get("cpu")
    if cpus:
        made.settings["cpus"] = _number(_quantity(resources, cpus))
    if limits.get("memory"):
        made.settings["memory"] = _size(resources, limits["memory"])
    elif requests.get("memory"):
        resources.note("requests.memory", "`memory` is a limit, and there is none; set jobs to reserve some")
    if limits.get(_GPU):
        made.settings["gpus"] = int(_quantity(resources, limits[_GPU]))
    for name in dict.fromkeys((*limits, *requests)):
        if name not in ("cpu", "memory", _GPU):
            resources.note(f"limits.{name}")
    for name, unit in (("cpu", "processors"), ("memory", "memory")):
        if name in limits and name in requests and limits[name] != requests[name]:
            counts = "the request counts" if name == "cpu" else "the limit counts"
            resources.note(name, f"a task has one number for its {unit}: {counts}")
    resources.close()


def _quantity(fields: Fields, text: str) -> float:
    try:
        return quantity(text)
    except ValueError:
        raise SpecError(fields.path, f"{text!r} is not a quantity of Kubernetes", "Correct it.") from None


def _size(fields: Fields, text: str) -> str:
    """A quantity of memory as a size: `4Gi` is `4GiB`."""
    number = _quantity(fields, text)
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if number >= 1024**power and number % 1024**power == 0:
            return f"{number / 1024**power:.0f}{unit}"
    return f"{number:.0f}"


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


def _set(target: dict[str, Any], key: str, value: Any) -> None:
    if value:
        target[key] = value
