"""Whether what was found belongs to a stack. Pure.

Only what is known to belong to none is left over: what cannot be known never is, nor what an update may be making.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..backends.base import Cluster, Found
from ..quantities import text_of_seconds
from ..registry import Entry

STACK, LEFT, UNKNOWN, BUSY, KEPT = "stack", "left over", "unknown", "busy", "kept"
"""It belongs to a stack; to none; nobody here can know; an update may be making it; `destroy` was to leave it."""

MARGIN = 600.0
"""Seconds in which an update has its `Sweeper`, its first resource, in the state, with much to spare."""

_FILE = "file://"
_VOLUME = "volume"
_SWEEPER = "pulumi-python:dynamic/tfdeploy:Sweeper"


@dataclass(frozen=True)
class Answer:
    """What Pulumi said of one stack."""

    clusters: frozenset[tuple[str, ...]] = frozenset()
    """Those that its state has."""
    missing: bool = False
    """Whether there is no such stack."""
    silent: str = ""
    """Why Pulumi could not be asked."""
    locked: bool | None = None
    """Whether an update has it; None where that is not told."""


def whose(cluster: Mapping[str, Any]) -> tuple[str, ...]:
    """What names a cluster, wherever it is."""
    return tuple(str(cluster.get(key, "")) for key in ("backend", "project", "stack", "name"))


def clusters_of(deployment: Mapping[str, Any]) -> frozenset[tuple[str, ...]]:
    """The clusters that a stack's state has, from `pulumi stack export`."""
    resources = (deployment.get("deployment") or {}).get("resources") or []
    sweepers = [one for one in resources if one["type"] == _SWEEPER]
    return frozenset(whose(one.get("inputs", {}).get("cluster", {})) for one in sweepers)


def entry_of(cluster: Cluster, entries: Sequence[Entry]) -> Entry | None:
    """What the registry knows of it; a folder of another state folder is none of its clusters."""
    for entry in entries:
        same_home = cluster["backend"] != "local" or entry.cluster["home"] == cluster["home"]
        if same_home and whose(entry.cluster) == whose(cluster):
            return entry
    return None


def belonging(found: Found, entry: Entry | None, answer: Answer, now: float) -> tuple[str, str]:
    """Whether it belongs to a stack, and why that is thought. The answer comes from where the entry says that the stack was kept."""
    if entry is None:
        return UNKNOWN, "it was not made from here"
    if whose(found.cluster) in answer.clusters:
        return STACK, ""
    if entry.ended and _keeps_volumes(entry) and set(found.has) <= {_VOLUME}:
        return KEPT, "`destroy` was to leave them (`keep_volumes`)"
    if answer.silent:
        return UNKNOWN, f"Pulumi could not be asked: {answer.silent}"
    if answer.locked:
        return BUSY, "its stack is locked: an update is under way; where none is, `pulumi cancel` frees it"
    if doubt := _doubt(entry, answer):
        return UNKNOWN, doubt
    if answer.locked is None and now - entry.begun < MARGIN:
        return BUSY, f"its update began {text_of_seconds(round(now - entry.begun))} ago, and may still be under way"
    return LEFT, "its stack is gone" if answer.missing else "its stack does not have it"


def _doubt(entry: Entry, answer: Answer) -> str:
    """Why that answer may be of another stack than the cluster's; nothing where it is not."""
    if not entry.login:
        return "nothing tells where Pulumi kept its stack"
    if entry.login.startswith(_FILE):
        return ""
    if answer.missing:
        return f"{entry.login} has no such stack for who asks now; another account may"
    return "" if entry.organization else f"nothing tells whose stack it was in {entry.login}"


def _keeps_volumes(entry: Entry) -> bool:
    return entry.options.get("keep_volumes", "false").lower() != "false"


def refusal(state: str, why: str, found: Found, now: float) -> str:
    """Why even who names it may not delete it; nothing where they may."""
    if not found.cluster["home"]:
        return "nothing tells whose it is: look into it, and remove it by hand"
    if state == STACK:
        return "it belongs to its stack: `pulumi destroy` takes it away"
    if state == BUSY:
        return why
    if state == UNKNOWN and found.since and now - found.since < MARGIN:
        age = text_of_seconds(round(now - found.since))
        return f"something of it was made {age} ago: its update may still be under way"
    return ""
