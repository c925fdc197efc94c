"""Whether the steps of an update only bring back what died. Pure.

A step is as `pulumi preview --json` tells it. What died is made again of the same inputs; whatever else a step does is an edit of
the program or of its settings, and is not ours to apply.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What Pulumi writes for a value that only the update will know."""

_SECRET = "[secret]"
_MISSING = object()
_IDLE = ("refresh", "same", "read", "read-replacement", "discard")
_MAKES = ("create", "update", "replace", "create-replacement")
_FOLLOWS = ("delete-replaced", "discard-replaced", "remove-pending-replace")
"""What comes with a replacement that is judged by its own step."""

_INSTANCE = "aws:ec2/instance:Instance"
_LIFE = "tfdeploy:life"
_OTHERWISE: Mapping[str, frozenset[str]] = {
    _INSTANCE: frozenset({"ami", "userData", "userDataBase64", f"tags.{_LIFE}", f"tagsAll.{_LIFE}"}),
    "aws:ec2/volumeAttachment:VolumeAttachment": frozenset({"instanceId"}),
    "pulumi-python:dynamic/tfdeploy:Swarm": frozenset(
        {"members.instance_id", "members.address", "members.private_ip", "members.life", "members.kind.image_id"}
    ),
    "pulumi-python:dynamic/tfdeploy:Task": frozenset({"supplies", "token"}),
    "pulumi-python:dynamic/tfdeploy:Run": frozenset({"supplies", "token"}),
    "pulumi:providers:docker": frozenset({"host"}),
}
"""Type to the inputs that differ though nobody has edited anything, because something else was made anew. An image that a machine
names by parameter is looked up again when it is made; one that is asked for by another name is told by a tag."""


@dataclass(frozen=True)
class Mending:
    """What an update would do."""

    back: tuple[str, ...]
    """The resources that it would bring back."""
    edits: tuple[str, ...]
    """What it would do beside that, in words."""


def mending(steps: Sequence[Mapping[str, Any]]) -> Mending:
    """What these steps come to."""
    stood = {step["urn"]: step["oldState"] for step in steps if step["op"] == "refresh" and step.get("oldState")}
    back: dict[str, None] = {}
    edits: list[str] = []
    for step in steps:
        if step["op"] in (*_IDLE, *_FOLLOWS):
            continue
        name = step["urn"].rpartition("::")[2]
        said = _edit(step, name, step.get("oldState") or stood.get(step["urn"]))
        if said:
            edits.append(said)
        else:
            back[name] = None
    return Mending(tuple(back), tuple(dict.fromkeys(edits)))


def _edit(step: Mapping[str, Any], name: str, old: Mapping[str, Any] | None) -> str:
    """What a step does beside bringing something back; nothing where it does no more."""
    if step["op"] not in _MAKES:
        return f"{name} would go"
    if old is None:
        return f"{name} would be made, and has not stood before"
    new = step.get("newState") or {}
    expected = _OTHERWISE.get(new.get("type", ""), frozenset())
    paths = [
        path for path in _differences(old.get("inputs", {}), new.get("inputs", {})) if not _covered(path, expected)
    ]
    paths = paths or [path for path in _unseen(step, old, new) if not _covered(path, expected)]
    return f"{name} would get another {' and another '.join(dict.fromkeys(paths))}" if paths else ""


def _unseen(step: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The secret inputs for which a resource that stands may be updated, where nothing that is shown differs."""
    before, after = ({**state.get("inputs", {}), "__provider": ""} for state in (old, new))
    if step["op"] != "update" or before != after:
        return []
    told = {
        re.split(r"[.\[]", path, maxsplit=1)[0] for path in step.get("detailedDiff") or step.get("diffReasons") or ()
    }
    return [key for key, value in sorted(after.items()) if _SECRET in json.dumps(value) and (not told or key in told)]


def _covered(path: str, expected: frozenset[str]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in expected)


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, but for what is secret or not known yet."""
    if _UNKNOWN in (old, new) or _SECRET in (old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new} - {"__provider"}):
            yield from _differences(old.get(key, _MISSING), new.get(key, _MISSING), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from _differences(one, other, path)
    elif old != new and not _nothing(old, new):
        yield path


def _nothing(old: Any, new: Any) -> bool:
    """What is not there, and what is there and empty, are one: states of an earlier version have less."""
    return (old is _MISSING or old is None) and (new is _MISSING or new is None)
