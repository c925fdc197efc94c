"""Where the stack's configuration takes the place of arguments.

Every argument may be left out of the program and given by `pulumi config set tfdeploy:NAME VALUE` instead (lists and
mappings as JSON, or by `--path`). What the program gives wins.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, is_typeddict

import pulumi
from pulumi.runtime.config import is_config_secret

from .arguments import TensorFlowClusterArgs
from .errors import SpecError


def _json(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = json.loads(text)
        if not isinstance(value, kind):
            raise ValueError(text)
        return value

    return read


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_KINDS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "str": (str, "a text"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (_truth, "true or false"),
    "list": (_json(list), "a list as JSON"),
    "dict": (_json(dict), "a mapping as JSON"),
}


def resolved(name: str, args: Mapping[str, Any], config: pulumi.Config) -> dict[str, Any]:
    """The arguments, with those of the stack's configuration where the program gives none.

    Raises:
        SpecError: a value of the configuration is of the wrong type, or an argument is unknown.
    """
    known = TensorFlowClusterArgs.__annotations__
    for key in args:
        if key not in known:
            raise SpecError(f"{name}: {key}", "is no argument of TensorFlowCluster", f"It knows {', '.join(known)}.")
    found = {key: value for key, value in args.items() if value is not None}
    for key, annotation in known.items():
        if key not in found and (text := config.get(key)) is not None:
            found[key] = _read(key, annotation, text)
    return found


def shown(key: str, value: Any) -> str:
    """An argument as text; what is secret, or only Pulumi will know, is named."""
    if key == "secrets" or is_config_secret(f"tfdeploy:{key}"):
        return "(secret)"
    if isinstance(value, pulumi.Output):
        return "(an output)"
    if key == "env":
        value = _names_of(value)
    if key == "jobs" and isinstance(value, Mapping):
        value = {job: _with_names(own) for job, own in value.items()}
    return value if isinstance(value, str) else json.dumps(value, default=lambda _: "(an output)", ensure_ascii=False)


def _read(key: str, annotation: Any, text: str) -> Any:
    kind = dict if is_typeddict(annotation) else getattr(annotation, "__origin__", annotation)
    read, words = _KINDS[kind.__name__]
    try:
        return read(text)
    except (ValueError, KeyError):
        where = f"configuration tfdeploy:{key}"
        remedy = f"Set it again: pulumi config set tfdeploy:{key} VALUE."
        given = "its value (not shown)" if key == "secrets" else repr(text)
        raise SpecError(where, f"{given} is not {words}", remedy) from None


def _with_names(own: Any) -> Any:
    """A job's own arguments without the values of its environment."""
    return {**own, "env": _names_of(own["env"])} if isinstance(own, Mapping) and "env" in own else own


def _names_of(env: Any) -> Any:
    """An environment without its values, which are often keys and passwords."""
    return dict.fromkeys(env, "…") if isinstance(env, Mapping) else "(an output)"
