"""Environment variables, secrets and context of tasks. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..agent.model.settings import SECRET_VARIABLE
from .arg_reader import ArgReader, not_encodable
from .unknown_values import Unknown, is_known

LONGEST_TEXT = 100_000
"""Bytes of a command, of the context, of an environment variable: Linux refuses a single one above 128 KiB."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_RESERVED = ("TF_CONFIG", "CUDA_VISIBLE_DEVICES")


def refuse_too_long(args: ArgReader, key: str, text: str) -> None:
    """Refuse a text above the system's limit.

    Raises:
        SpecError: the text is too long.
    """
    length = len(text.encode())
    if length > LONGEST_TEXT:
        remedy = "Put the data into a file in the folder `code`."
        raise args.error(key, f"{length} bytes are more than the limit of {LONGEST_TEXT}", remedy)


@dataclass(frozen=True)
class SecretText:
    """A secret value of `env`: of the stack's configuration, or of an Output that is secret as a whole."""

    value: str = field(repr=False)


def secret_texts(env: Mapping[str, object]) -> dict[str, object]:
    """An `env` with its texts marked as secret. Other values are left for the validation to report."""
    return {name: SecretText(value) if isinstance(value, str) else value for name, value in env.items()}


def environment(args: ArgReader, key: str, default: object) -> Mapping[str, str]:
    """The variables of a job's `env`, where a value cannot be secret.

    Raises:
        SpecError: a name is not valid or reserved, or a value is not a string or too long.
    """
    plain = plain_environment(args, key, default)
    for name in args.args.get(key) or ():
        if name not in plain:
            remedy = "Use a string here, and move a secret or an Output into the cluster's `env` or `secrets`."
            raise args.error(f"env.{name}", "the value (not shown) is not a string", remedy)
    return plain


def plain_environment(args: ArgReader, _key: str, _default: object) -> Mapping[str, str]:
    """The variables of the cluster's `env` with values that are not of secret configuration, and not secret Outputs.

    Raises:
        SpecError: a name is not valid or reserved, or a value is of the wrong type or too long.
    """
    values = args.mapping("env", _VARIABLE, object)
    for name, value in values.items():
        where = f"env.{name}"
        if _is_reserved(name):
            raise args.error(where, "the variable is set by tfdeploy", "Use another name.")
        _refuse_type(args, where, value)
        _refuse_variable(args, where, value)
    return {name: value for name, value in values.items() if isinstance(value, str)}


def secrets(args: ArgReader, _key: str = "secrets", _default: object = ()) -> tuple[str, ...]:
    """The names of `secrets`.

    Raises:
        SpecError: a name or a value is not valid.
    """
    values = args.mapping("secrets", _SECRET, object)
    for name, value in values.items():
        where = f"secrets.{name}"
        _refuse_type(args, where, value)
        if _is_reserved(name):
            raise args.error(where, "the variable is set by tfdeploy", "Use another name.")
        if SECRET_VARIABLE.fullmatch(name):
            _refuse_variable(args, where, value)
    return tuple(values)


def refuse_same_names(args: ArgReader, names: Sequence[str], env: set[str]) -> None:
    """Refuse secrets with names that are in `env`.

    Raises:
        SpecError: there is such a secret.
    """
    for name in names:
        if name in env:
            raise args.error(f"secrets.{name}", "the same name is in `env`", "Use another name.")


def _refuse_type(args: ArgReader, where: str, value: object) -> None:
    if value is None or isinstance(value, (int, float, bytes, list, tuple, Mapping)):
        wrong = f"the value (not shown) is of type {type(value).__name__}"
        raise args.error(where, wrong, "Use a string, or an Output of a string.")


def _refuse_variable(args: ArgReader, where: str, value: object) -> None:
    """Refuse a value that an environment variable cannot hold; that of an Output is checked by the update."""
    text = value.value if isinstance(value, SecretText) else value if isinstance(value, str) else ""
    if wrong := not_encodable(text):
        raise args.error(where, f"the value (not shown) contains {wrong}", "Remove it from the string.")
    refuse_too_long(args, where, text)


def context(args: ArgReader, _key: str, _default: object) -> str:
    """`context` as JSON.

    Raises:
        SpecError: a value has no JSON form, or the JSON is too long.
    """
    value = args.mapping("context", values=object)
    remedy = "Use strings, numbers, lists and mappings only."
    try:
        text = json.dumps(value, sort_keys=True, allow_nan=False)
    except TypeError as error:
        raise args.error("context", f"cannot be converted to JSON ({error})", remedy) from None
    except (ValueError, RecursionError):
        # The standard library's text differs between versions of Python.
        wrong = "contains a NaN, an infinite number or a value that contains itself, which JSON does not have"
        raise args.error("context", wrong, remedy) from None
    refuse_too_long(args, "context", text)
    return text if is_known(value) else Unknown("context")


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or name.startswith("TFDEPLOY_")
