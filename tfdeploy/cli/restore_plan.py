"""What `tfdeploy restart --lost` would do: restore lost resources, or also apply edits. Pure.

A step is one of `pulumi preview --json`. A lost resource is created again with the same inputs; every other difference is an edit of
the program or its configuration, and the command refuses it.

`pulumi up --target` cannot replace this comparison: it limits which resources are updated, but those still get the edited inputs of
the program.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What Pulumi writes for an output that is not known before the update: `plugin.UnknownStringValue` of its SDK."""

_SECRET = "[secret]"
_MISSING = object()
_IDLE = ("refresh", "same", "read", "read-replacement", "discard")
_CREATES = ("create", "update", "replace", "create-replacement")
_REPLACEMENT_STEPS = ("delete-replaced", "discard-replaced", "remove-pending-replace")
"""Parts of a replacement, which has one step as a whole."""

_INSTANCE = "aws:ec2/instance:Instance"
_TASK = "pulumi-python:dynamic/tfdeploy:Task"
_DEPENDENT_INPUTS: Mapping[str, frozenset[str]] = {
    _INSTANCE: frozenset({"ami", "userData", "userDataBase64"}),
    "aws:ec2/volumeAttachment:VolumeAttachment": frozenset({"instanceId"}),
    "pulumi-python:dynamic/tfdeploy:Swarm": frozenset(
        {"members.instance_id", "members.address", "members.private_ip", "members.kind.image_id"}
    ),
    "pulumi-python:dynamic/tfdeploy:Cleanup": frozenset({"place"}),
    "pulumi-python:dynamic/tfdeploy:Image": frozenset({"swarm"}),
    _TASK: frozenset({"dependencies", "token"}),
    "pulumi-python:dynamic/tfdeploy:Run": frozenset({"dependencies", "token"}),
    "pulumi:providers:docker": frozenset({"host"}),
}
"""Type to the inputs that change without an edit, because another resource was created again. The image of an instance that is named
by a parameter is looked up when the instance is created; if it is named otherwise, a tag has the name."""


@dataclass(frozen=True)
class RestorePlan:
    """What an update would do."""

    restored: tuple[str, ...]
    """The resources that it would create again."""
    edits: tuple[str, ...]
    """What it would change beside that, in sentences."""


_PLACE_INPUTS = frozenset({"machine", "gpus", "container.gpu_kind"})
"""The inputs of a task that change with its machine."""


def restore_plan(steps: Sequence[Mapping[str, Any]], lost_machine: str = "") -> RestorePlan:
    """What these steps restore, and what they edit. The tasks of a lost machine are restored elsewhere."""
    refreshed = {step["urn"]: step["oldState"] for step in steps if step["op"] == "refresh" and step.get("oldState")}
    restored: dict[str, None] = {}
    edits: dict[str, None] = {}
    for step in steps:
        if step["op"] in (*_IDLE, *_REPLACEMENT_STEPS):
            continue
        name = step["urn"].rpartition("::")[2]
        edit = _edit(step, name, step.get("oldState") or refreshed.get(step["urn"]), lost_machine)
        if edit:
            edits[edit] = None
        else:
            restored[name] = None
    return RestorePlan(tuple(restored), tuple(edits))


def _edit(step: Mapping[str, Any], name: str, old: Mapping[str, Any] | None, lost_machine: str) -> str:
    """What a step changes beside restoring a resource; empty if it only restores it."""
    if step["op"] not in _CREATES:
        return f"{name} would be deleted"
    if old is None:
        return f"{name} would be created for the first time"
    new = step.get("newState") or {}
    dependent = _DEPENDENT_INPUTS.get(new.get("type", ""), frozenset())
    if lost_machine and new.get("type") == _TASK and old.get("inputs", {}).get("machine") == lost_machine:
        dependent |= _PLACE_INPUTS
    differences = list(_differences(old.get("inputs", {}), new.get("inputs", {})))
    paths = [path for path in differences if not _is_in(path, dependent)]
    paths = paths or [path for path in _hidden_changes(step, old, new) if not _is_in(path, dependent)]
    return f"{name} would change: {', '.join(dict.fromkeys(paths))}" if paths else ""


def _hidden_changes(step: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The secret inputs that may be why an existing resource is updated, if no visible input differs."""
    before, after = ({**state.get("inputs", {}), "__provider": ""} for state in (old, new))
    if step["op"] != "update" or before != after:
        return []
    reasons = step.get("detailedDiff") or step.get("diffReasons") or ()
    changed = {re.split(r"[.\[]", path, maxsplit=1)[0] for path in reasons}
    return [
        key for key, value in sorted(after.items()) if _SECRET in json.dumps(value) and (not changed or key in changed)
    ]


def _is_in(path: str, inputs: frozenset[str]) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in inputs)


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths at which two values differ, except for secret and unknown values."""
    if _UNKNOWN in (old, new) or _SECRET in (old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new} - {"__provider"}):
            yield from _differences(old.get(key, _MISSING), new.get(key, _MISSING), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for old_item, new_item in zip(old, new, strict=True):
            yield from _differences(old_item, new_item, path)
    elif old != new and not (_is_absent(old) and _is_absent(new)):
        yield path


def _is_absent(value: Any) -> bool:
    """Missing and None are the same: Pulumi's state leaves out what is None."""
    return value is _MISSING or value is None
