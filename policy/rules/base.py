"""What a rule is, and how it reads a resource's inputs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Inputs = Mapping[str, Any]
"""As Pulumi's engine has them (`associatePublicIpAddress`), with UNKNOWN for values that are not known yet."""


class Unknown(Enum):
    """The value of an input that is known only after another resource is created."""

    VALUE = "unknown"


UNKNOWN = Unknown.VALUE


@dataclass(frozen=True)
class RuleOptions:
    """What the user allows explicitly; the rules accept it then."""

    public: bool = True
    """The machines are reached under public addresses."""
    anywhere: bool = False
    """SSH is open to every address (`ssh_cidrs`)."""
    disks: tuple[str, ...] = ("gp3",)
    """The types that disks may have (`root_volume_type`)."""
    session_manager: bool = False
    """The machines are reached through AWS's Session Manager, and need its policy."""


@dataclass(frozen=True)
class Rule:
    """One condition that every cluster meets."""

    name: str
    statement: str
    types: tuple[str, ...]
    wrongs: Callable[[Inputs, RuleOptions], Iterable[str]]
    """What is wrong with one resource, a sentence each."""
    ids: tuple[str, ...] = ()
    """The ids of the same rules in cdk-nag, checkov and trivy."""
    option: str = ""
    """The field of `RuleOptions` that it uses."""


def value_at(inputs: Any, *path: str) -> Any:
    """The value at a path: None if it is missing, UNKNOWN if it or its container is not known."""
    for key in path:
        if inputs is UNKNOWN:
            return UNKNOWN
        inputs = inputs.get(key) if isinstance(inputs, Mapping) else None
    return inputs


def fits(value: Any, *good: Any) -> bool:
    """Whether it is one of these values, or may become one."""
    return value is UNKNOWN or value in good


def known_items(value: Any) -> list[Any]:
    """The known items of a list, or of a single value."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [item for item in items if item is not None and item is not UNKNOWN]
