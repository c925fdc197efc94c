"""What `volumes` asks for, as the engine takes it. Pure.

Both of Docker's own forms: `-v`'s `SOURCE:TARGET[:ro]` and `--mount`'s `type=…,source=…,target=…`:
https://docs.docker.com/engine/storage/volumes/#syntax
"""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import SpecError
from ...quantities import SIZE_FORM, size

Mount = dict[str, Any]
"""A mount in the words of the Engine API (`Type`, `Source`, `Target`, `ReadOnly`, `VolumeOptions`, …)."""

_KEYS = {"type", "source", "target", "readonly", "volume-driver", "volume-opt", "volume-label", "volume-nocopy", "size"}
_SAME = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}
_LONG = re.compile(r'(^|,)"?(target|dst|destination)=')
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]+")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_FORMS = "It takes SOURCE:TARGET[:ro], or Docker's long form type=volume,source=NAME,target=/FOLDER[,readonly][,volume-opt=…]"


def parse(where: str, text: str, labels: Mapping[str, str]) -> Mount:
    """The mount that a text asks for; a named volume that is made for it carries `labels`.

    Raises:
        SpecError: it is in neither form.
    """
    mount = _long(where, text, labels) if _LONG.search(text) else _short(where, text, labels)
    if not mount["Target"].startswith("/") or not mount["Target"].strip("/"):
        raise SpecError(where, f"{text!r} has no absolute folder as its target", f"{_FORMS}.")
    return mount


def _short(where: str, text: str, labels: Mapping[str, str]) -> Mount:
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or mode not in ("", "ro", "rw"):
        raise SpecError(where, f"{text!r} names no source and target", f"{_FORMS}.")
    if source.startswith("/"):
        return bind(source, target, mode == "ro")
    return volume(where, source, target, labels, mode == "ro")


def _long(where: str, text: str, labels: Mapping[str, str]) -> Mount:
    options, own_labels, flags = {}, dict(labels), {}
    for part in _parts(where, text):
        key, has_value, value = part.partition("=")
        key = _SAME.get(key, key)
        name, _, setting = value.partition("=")
        is_flag = key in ("readonly", "volume-nocopy")
        if key not in _KEYS or not (has_value or is_flag) or (is_flag and has_value and value not in _TRUTH):
            raise SpecError(where, f"{part!r} in {text!r} is unknown", f"{_FORMS}.")
        if key == "volume-opt":
            options[name] = setting
        elif key == "volume-label":
            own_labels[name] = setting
        else:
            flags[key] = value or "true"
    read_only, kind = _TRUTH[flags.get("readonly", "false")], flags.get("type", "volume")
    target, source = flags.get("target", ""), flags.get("source", "")
    if kind == "bind" and source.startswith("/"):
        return bind(source, target, read_only)
    if kind == "tmpfs":
        return tmpfs(target, _size(where, flags.get("size", "0")))
    if kind != "volume" or not source:
        raise SpecError(where, f"{text!r} is a {kind} without a source", f"{_FORMS}.")
    if "size" in flags:
        options["size"] = flags["size"]
    driver = {"Name": flags.get("volume-driver", "local"), "Options": options}
    driven = driver if options or "volume-driver" in flags else None
    mount = volume(where, source, target, own_labels, read_only, driven)
    if _TRUTH[flags.get("volume-nocopy", "false")]:
        mount["VolumeOptions"]["NoCopy"] = True
    return mount


def _parts(where: str, text: str) -> list[str]:
    try:
        return next(csv.reader([text]))
    except csv.Error as error:
        raise SpecError(where, f"{text[:100]!r} cannot be read ({error})", f"{_FORMS}.") from None


def _size(where: str, text: str) -> int:
    try:
        return size(text)
    except ValueError:
        raise SpecError(where, f"{text!r} is no size", f"It takes {SIZE_FORM}.") from None


def bind(source: str, target: str, read_only: bool) -> Mount:
    """A folder of the machine."""
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def tmpfs(target: str, most: int) -> Mount:
    """Memory of the machine, at most so many bytes."""
    return {"Type": "tmpfs", "Target": target, "TmpfsOptions": {"SizeBytes": most} if most else {}}


def shm(most: int) -> list[Mount]:
    """Shared memory of at most so many bytes; none for 0, where Docker's own is enough."""
    return [tmpfs("/dev/shm", most)] if most else []


def volume(
    where: str,
    source: str,
    target: str,
    labels: Mapping[str, str],
    read_only: bool = False,
    driver: Mapping[str, Any] | None = None,
) -> Mount:
    """A named volume of the machine, made when it is first mounted there.

    Raises:
        SpecError: the name is none that Docker takes.
    """
    if not _NAME.fullmatch(source):
        raise SpecError(where, f"{source!r} is neither an absolute folder nor a volume's name", f"{_FORMS}.")
    options = {"Labels": dict(labels)} | ({"DriverConfig": dict(driver)} if driver else {})
    return {"Type": "volume", "Source": source, "Target": target, "ReadOnly": read_only, "VolumeOptions": options}


def clash(mounts: Sequence[Mount]) -> str:
    """A target that two mounts share; empty when there is none."""
    targets = [mount["Target"].rstrip("/") for mount in mounts]
    return next((target for target in targets if targets.count(target) > 1), "")
