"""The mounts of containers: the parser of `volumes`, and which volumes of a task only it uses. Pure.

The argument takes both of Docker's forms: `SOURCE:TARGET[:ro]` of `-v` and `type=…,source=…,target=…` of `--mount`.
https://docs.docker.com/engine/storage/volumes/#syntax
"""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ...errors import SpecError
from ...units import SIZE_FORM, size
from ..base import ClusterRef
from ..container_layout import refuse_relative, split_mount
from .labels import TRAIN_VOLUME, Services, machine_of, volume_name


class Mount(TypedDict, total=False):
    """A mount in the form of the Engine API."""

    Type: str
    Source: str
    Target: str
    ReadOnly: bool
    VolumeOptions: dict[str, Any]
    TmpfsOptions: dict[str, Any]


_KEYS = {"type", "source", "target", "readonly", "volume-driver", "volume-opt", "volume-label", "volume-nocopy", "size"}
_ALIASES = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}
_LONG_FORM = re.compile(r'(^|,)"?(target|dst|destination)=')
_VOLUME_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]+")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_REMEDY = (
    "Use SOURCE:TARGET[:ro], or Docker's long form type=volume,source=NAME,target=/FOLDER[,readonly][,volume-opt=…]."
)

_LOCAL_DRIVER = "local"
"""The default driver; without options, its volumes exist on one machine only, also when others have the same name."""


def parse_mount(where: str, text: str, labels: Mapping[str, str]) -> Mount:
    """The mount that a text describes; a named volume that Docker creates for it gets `labels`.

    Raises:
        SpecError: the text has neither form.
    """
    if not _LONG_FORM.search(text):
        source, target, read_only = split_mount(where, text, _REMEDY)
        is_folder = source.startswith("/")
        return bind(source, target, read_only) if is_folder else volume(where, source, target, labels, read_only)
    mount = _parse_long(where, text, labels)
    refuse_relative(where, text, mount["Target"], _REMEDY)
    return mount


def _parse_long(where: str, text: str, labels: Mapping[str, str]) -> Mount:
    driver_options, volume_labels, settings = {}, dict(labels), {}
    for part in _split(where, text):
        key, has_value, value = part.partition("=")
        key = _ALIASES.get(key, key)
        name, _, option = value.partition("=")
        is_flag = key in ("readonly", "volume-nocopy")
        if key not in _KEYS or not (has_value or is_flag) or (is_flag and has_value and value not in _BOOLEANS):
            raise SpecError(where, f"{part!r} in {text!r} is not a valid option", _REMEDY)
        if key == "volume-opt":
            driver_options[name] = option
        elif key == "volume-label":
            volume_labels[name] = option
        else:
            settings[key] = value or "true"
    read_only, kind = _BOOLEANS[settings.get("readonly", "false")], settings.get("type", "volume")
    target, source = settings.get("target", ""), settings.get("source", "")
    if kind == "bind" and source.startswith("/"):
        return bind(source, target, read_only)
    if kind == "tmpfs":
        return tmpfs(target, _parse_size(where, settings.get("size", "0")))
    if kind != "volume" or not source:
        raise SpecError(where, f"{text!r} is a {kind} without a source", _REMEDY)
    if "size" in settings:
        driver_options["size"] = settings["size"]
    driver = {"Name": settings.get("volume-driver", "local"), "Options": driver_options}
    has_driver = bool(driver_options) or "volume-driver" in settings
    mount = volume(where, source, target, volume_labels, read_only, driver if has_driver else None)
    if _BOOLEANS[settings.get("volume-nocopy", "false")]:
        mount["VolumeOptions"]["NoCopy"] = True
    return mount


def _split(where: str, text: str) -> list[str]:
    try:
        return next(csv.reader([text]))
    except csv.Error as error:
        raise SpecError(where, f"{text[:100]!r} is not a valid mount ({error})", _REMEDY) from None


def _parse_size(where: str, text: str) -> int:
    try:
        return size(text)
    except ValueError:
        raise SpecError(where, f"{text!r} is not a valid size", f"It takes {SIZE_FORM}.") from None


def bind(source: str, target: str, read_only: bool) -> Mount:
    """A folder of the machine."""
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def tmpfs(target: str, max_bytes: int) -> Mount:
    """Memory of the machine; 0 for no limit."""
    return {"Type": "tmpfs", "Target": target, "TmpfsOptions": {"SizeBytes": max_bytes} if max_bytes else {}}


def shm(max_bytes: int) -> list[Mount]:
    """Shared memory of that size; none for 0, which leaves Docker's default."""
    return [tmpfs("/dev/shm", max_bytes)] if max_bytes else []


def volume(
    where: str,
    source: str,
    target: str,
    labels: Mapping[str, str],
    read_only: bool = False,
    driver: Mapping[str, Any] | None = None,
) -> Mount:
    """A named volume of the machine, which Docker creates when it is first mounted there.

    Raises:
        SpecError: Docker does not accept the name.
    """
    if not _VOLUME_NAME.fullmatch(source):
        raise SpecError(where, f"{source!r} is neither an absolute folder nor a valid volume name", _REMEDY)
    options = {"Labels": dict(labels)} | ({"DriverConfig": dict(driver)} if driver else {})
    return {"Type": "volume", "Source": source, "Target": target, "ReadOnly": read_only, "VolumeOptions": options}


def writable_volumes(services: Services, hostname: str) -> Sequence[Mapping[str, Any]]:
    """The named volumes that a task mounts."""
    mounts = services[hostname]["Spec"]["TaskTemplate"]["ContainerSpec"].get("Mounts") or []
    return [mount for mount in mounts if mount["Type"] == "volume" and mount.get("Source")]


def exclusive_volumes(cluster: ClusterRef, services: Services, hostname: str) -> list[str]:
    """The names of the volumes that only this task mounts and may write to, without the cluster's checkpoints."""
    checkpoints = volume_name(cluster, TRAIN_VOLUME)
    return [
        mount["Source"]
        for mount in writable_volumes(services, hostname)
        if mount["Source"] != checkpoints and not mount.get("ReadOnly") and not _is_shared(services, hostname, mount)
    ]


def _is_shared(services: Services, hostname: str, mount: Mapping[str, Any]) -> bool:
    """Whether another service mounts the volume; for a volume of one machine, another service on that machine."""
    driver = (mount.get("VolumeOptions") or {}).get("DriverConfig") or {}
    is_of_one_machine = driver.get("Name", _LOCAL_DRIVER) == _LOCAL_DRIVER and not driver.get("Options")
    return any(
        other != hostname
        and any(item["Source"] == mount["Source"] for item in writable_volumes(services, other))
        and not (is_of_one_machine and machine_of(services[other]) not in ("", machine_of(services[hostname])))
        for other in services
    )


def restart_effects(cluster: ClusterRef, services: Services, hostname: str, train_dir: str, replace: bool) -> list[str]:
    """Sentences about what a restart, or a replacement, does to a task's data."""
    machine = machine_of(services[hostname])
    removed = exclusive_volumes(cluster, services, hostname) if replace else []
    checkpoints = volume_name(cluster, TRAIN_VOLUME)
    mounted = [mount["Source"] for mount in writable_volumes(services, hostname)]
    retained = [volume for volume in mounted if volume not in (*removed, checkpoints)]
    sentences = [
        f"{hostname} gets a new container on {machine}; the other tasks continue.",
        "Files that it wrote into its old container are lost.",
    ]
    if removed:
        data = "will be removed with all data, unless created before the cluster"
        sentences.append(f"{_named(removed)} on {machine}, used only by this task, {data}.")
    elif replace:
        sentences.append("No volume is used only by this task, so none is removed.")
    if retained:
        sentences.append(f"{_named(retained)} will be retained.")
    return [*sentences, f"Files in train_dir ({train_dir}) will be retained."]


def _named(volumes: Sequence[str]) -> str:
    return f"Volume{'s' if len(volumes) > 1 else ''} {', '.join(volumes)}"
