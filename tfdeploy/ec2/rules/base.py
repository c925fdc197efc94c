"""What a rule is, and how it reads a resource's inputs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Inputs = Mapping[str, Any]
"""As Pulumi's engine has them (`associatePublicIpAddress`), with UNKNOWN for what it does not know yet."""


class Unknown(Enum):
    """What stands for a value that is known only when something else is made."""

    VALUE = "unknown"


UNKNOWN = Unknown.VALUE


@dataclass(frozen=True)
class Asked:
    """What the user has asked for by word: no rule speaks against it then."""

    public: bool = True
    """The machines are reached under public addresses."""
    anywhere: bool = False
    """ssh is let in from everywhere (`ssh_from`)."""
    disks: tuple[str, ...] = ("gp3",)
    """The types that disks may have (`root_volume_type`)."""
    session_manager: bool = False
    """The machines are reached through AWS's Session Manager, whose policy they need."""


@dataclass(frozen=True)
class Rule:
    """One thing that holds."""

    name: str
    says: str
    types: tuple[str, ...]
    wrongs: Callable[[Inputs, Asked], Iterable[str]]
    """What is wrong with one resource, a sentence each."""
    answers: tuple[str, ...] = ()
    """The rules of cdk-nag, checkov and trivy that it answers to."""
    word: str = ""
    """The field of `Asked` that it listens to."""


def at(inputs: Any, *path: str) -> Any:
    """What is there: None for nothing, UNKNOWN when it, or what it is in, is not known."""
    for key in path:
        if inputs is UNKNOWN:
            return UNKNOWN
        inputs = inputs.get(key) if isinstance(inputs, Mapping) else None
    return inputs


def fits(value: Any, *good: Any) -> bool:
    """Whether it is one of these, or may be."""
    return value is UNKNOWN or value in good


def known(value: Any) -> list[Any]:
    """What is known of a list, or of the one thing that stands for a list of it."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [item for item in items if item is not None and item is not UNKNOWN]
