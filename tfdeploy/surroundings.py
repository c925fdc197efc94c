"""What a task finds around it: its environment, secrets and context, checked at birth. Pure."""

import json
import re
from collections.abc import Mapping

from .asked import Asked

LONGEST_TEXT = 100_000
"""Bytes of a command, of the context, of a value in the environment: Linux takes no single one over 128 KiB."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_RESERVED = ("TF_CONFIG", "CUDA_VISIBLE_DEVICES")


def refuse_long(ask: Asked, key: str, text: str) -> None:
    """Refuse what is longer than a system takes.

    Raises:
        SpecError: it is.
    """
    if len(text.encode()) > LONGEST_TEXT:
        raise ask.refuse(key, f"has {len(text.encode())} bytes", f"At most {LONGEST_TEXT}: ship a file with `code`.")


def environment(ask: Asked) -> dict[str, str]:
    """The variables of `env`.

    Raises:
        SpecError: one has no variable's name, is tfdeploy's own, or too long.
    """
    env = ask.mapping("env", _VARIABLE)
    for name, value in env.items():
        refuse_long(ask, f"env: {name}", value)
        if name in _RESERVED or name.startswith("TFDEPLOY_"):
            raise ask.refuse("env", f"{name} is set by tfdeploy itself", "Choose another name.")
    return env


def secrets(ask: Asked, env: set[str]) -> tuple[str, ...]:
    """The names of `secrets`, none of which is in `env`.

    Raises:
        SpecError: a name or a value will not do.
    """
    values = ask.mapping("secrets", _SECRET, object)
    for name, value in values.items():
        if value is None or isinstance(value, (int, float, bytes, list, tuple, Mapping)):
            wrong = f"is of type {type(value).__name__}"
            raise ask.refuse(f"secrets: {name}", wrong, "It takes a text, or an Output of one.")
        if name in env or name in _RESERVED or name.startswith("TFDEPLOY_"):
            raise ask.refuse("secrets", f"{name} stands in env too, or is tfdeploy's own", "Choose another name.")
    return tuple(values)


def context(ask: Asked) -> str:
    """`context` as JSON.

    Raises:
        SpecError: it cannot be written so, or is too long.
    """
    value = ask.mapping("context", values=object)
    try:
        text = json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ask.refuse(
            "context", f"cannot be written as JSON ({error})", "Use texts, numbers, lists, dicts."
        ) from None
    refuse_long(ask, "context", text)
    return text
