"""Merges the arguments of a program with the stack's configuration.

Every argument may be set by `pulumi config set tfdeploy:NAME VALUE` (lists and mappings as JSON, or by `--path`). Mappings
are merged key by key, groups of arguments at every level. The program's values override the configuration's.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
from pulumi.runtime.config import CONFIG, get_config_env, is_config_secret

from ..errors import SpecError
from ..spec.arg_reader import NEVER_SHOWN, unknown_remedy
from ..spec.argument import DATA, GROUP, MAPPING, NAMED_GROUPS, TEXTS, Argument, arguments
from ..spec.backends import JOB_MAPPINGS
from ..spec.cluster import GROUPS, ClusterSpec
from ..spec.environment import secret_texts
from ..units import DURATION_FORM, seconds

_NAMESPACE = "tfdeploy"

_MAPPINGS = (MAPPING, DATA, GROUP, NAMED_GROUPS)


def resolved(name: str, args: Mapping[str, Any], config: pulumi.Config) -> dict[str, Any]:
    """The arguments of the program, merged with those of the stack's configuration.

    Raises:
        SpecError: a value of the configuration has the wrong type or must not be secret, or an argument does not exist.
    """
    declared = arguments(ClusterSpec)
    for key, value in args.items():
        if key not in declared:
            remedy = unknown_remedy(key, tuple(declared), GROUPS, value)
            raise SpecError(f"{name}: {key}", "is not an argument of TensorFlowCluster", remedy)
    _refuse_unknown_configuration(tuple(declared))
    merged = {key: value for key, value in args.items() if value is not None}
    for key, argument in declared.items():
        is_merged = argument.kind in _MAPPINGS and isinstance(merged.get(key), Mapping)
        if (key not in merged or is_merged) and (text := config.get(key)) is not None:
            parsed = _parsed(key, argument, text)
            configured = _secret(key, parsed) if _is_secret(key) else parsed
            merged[key] = _merged(configured, merged[key]) if key in merged else configured
    return merged


def overridden(args: Mapping[str, Any], config: pulumi.Config) -> list[str]:
    """A sentence for each argument that both the program and the configuration set, to different values: which of them counts."""
    declared = arguments(ClusterSpec)
    sentences = []
    for key, value in args.items():
        text = config.get(key) if value is not None and key in declared else None
        if text is None:
            continue
        try:
            parts = _overridden_parts(key, _parsed(key, declared[key], text), value)
        except SpecError:  # it has no effect, whatever it is
            parts = [(key, text, value)]
        sentences += [_counts(*part) for part in parts]
    return sentences


def _overridden_parts(key: str, configured: Any, program: Any) -> list[tuple[str, Any, Any]]:
    """The arguments below this one that have two values: name, value of the configuration, value of the program."""
    if isinstance(configured, Mapping) and isinstance(program, Mapping):
        both = [name for name in configured if program.get(name) is not None]
        return [part for name in both for part in _overridden_parts(f"{key}.{name}", configured[name], program[name])]
    is_same = configured == (list(program) if isinstance(program, tuple) else program)
    return [] if is_same else [(key, configured, program)]


def _counts(key: str, configured: Any, program: Any) -> str:
    names = key.split(".")
    if _is_secret(names[0]) or {"env", "secrets"} & {*names}:
        return f"configuration tfdeploy:{key} has no effect: the program sets it"
    values = [shown(names[0], value) for value in (configured, program)]
    return f"configuration tfdeploy:{key}={values[0]} has no effect: the program sets it to {values[1]}"


def _refuse_unknown_configuration(names: Sequence[str]) -> None:
    """Refuse keys of the configuration that are not arguments. A project of the name tfdeploy has its own keys there.

    Raises:
        SpecError: there is such a key.
    """
    if pulumi.get_project() == _NAMESPACE:
        return
    for key in sorted({*CONFIG.get(), *get_config_env()}):
        namespace, _, name = key.partition(":")
        if namespace == _NAMESPACE and name not in names:
            group, _, member = name.partition(".")
            remedy = unknown_remedy(name, names, GROUPS)
            if member and group in names:
                remedy = f"A member of a group needs --path: pulumi config set --path '{key}' VALUE."
            removal = f"Remove it by `pulumi config rm {key}`."
            raise SpecError(f"configuration {key}", "is not an argument of TensorFlowCluster", f"{remedy} {removal}")


def shown(key: str, value: Any) -> str:
    """An argument as text, without secrets and without the values of `env`."""
    if key == "secrets" or _is_secret(key):
        return "(secret)"
    if isinstance(value, pulumi.Output):
        return "(an output)"
    if key == "env":
        value = _names_only(value)
    if key in JOB_MAPPINGS and isinstance(value, Mapping):
        value = {job: _without_env_values(own) for job, own in value.items()}
    return value if isinstance(value, str) else json.dumps(value, default=lambda _: "(an output)", ensure_ascii=False)


def _is_secret(key: str) -> bool:
    return bool(is_config_secret(f"tfdeploy:{key}"))


def _secret(key: str, value: Any) -> Any:
    """A secret value of the configuration, marked so that it stays secret.

    Raises:
        SpecError: the value of this argument would be stored in plain text: in Pulumi's state, in the record, in command lines.
    """
    if key == "secrets":
        return value
    if key == "env":
        return secret_texts(value)
    where, wrong = f"configuration tfdeploy:{key}", "is secret, but this argument is stored in plain text"
    remedy = (
        f"Put the secret into `secrets` or `env` (pulumi config set --secret --path tfdeploy:secrets.NAME VALUE), and set "
        f"tfdeploy:{key} again with --plaintext."
    )
    raise SpecError(where, wrong, remedy)


def _merged(configured: Any, program: Any) -> Any:
    """Two values of one argument; the program's overrides, except that mappings are merged key by key."""
    if not isinstance(configured, Mapping) or not isinstance(program, Mapping):
        return program
    merged = dict(configured)
    for key, value in program.items():
        if value is not None:
            merged[key] = _merged(merged[key], value) if key in merged else value
    return merged


def _parsed(key: str, argument: Argument, text: str) -> Any:
    parse, form = _PARSERS.get(argument.kind, _MAPPING_PARSER)
    try:
        return _converted(argument, parse(text))
    except (ValueError, KeyError, RecursionError):
        where = f"configuration tfdeploy:{key}"
        remedy = f"Set it again: pulumi config set tfdeploy:{key} VALUE."
        value = "the value (not shown)" if key in NEVER_SHOWN or _is_secret(key) else repr(text)
        raise SpecError(where, f"{value} is not {form}", remedy) from None


def _converted(argument: Argument | None, value: Any) -> Any:
    """A value below a mapping with the type that the argument has: `pulumi config set --path` stores `5` as a number and
    `0.5` as a string, whatever the argument expects. Values that do not fit are left for the validation to report."""
    if argument is None:
        return value
    if argument.kind == NAMED_GROUPS and isinstance(value, Mapping):
        return {name: _converted(replace(argument, kind=GROUP), item) for name, item in value.items()}
    if argument.members and isinstance(value, Mapping):
        members = arguments(argument.members)
        return {key: _converted(members.get(key), item) for key, item in value.items()}
    if argument.kind == MAPPING and isinstance(value, Mapping):
        return {key: _as_text(item) for key, item in value.items()}
    if argument.kind == TEXTS and isinstance(value, list):
        return [_as_text(item) for item in value]
    if argument.kind == "float" and isinstance(value, str):
        return float(value)
    if argument.kind == "bool" and value in (0, 1):
        return bool(value)
    return _as_text(value) if argument.kind == "str" else value


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _json(kind: type) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        value = json.loads(text)
        if not isinstance(value, kind):
            raise ValueError(text)
        return value

    return parse


def _boolean(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


_PARSERS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "str": (str, "a string"),
    "bool": (_boolean, "true or false"),
    "int": (int, "an integer"),
    "float": (float, "a number"),
    TEXTS: (_json(list), "a list as JSON"),
}
"""The kind of an argument to its parser, and to the form that the parser reads."""

_MAPPING_PARSER = (_json(dict), "a mapping as JSON")


def _without_env_values(own: Any) -> Any:
    return {**own, "env": _names_only(own["env"])} if isinstance(own, Mapping) and "env" in own else own


def _names_only(env: Any) -> Any:
    """An environment without its values, which are often keys and passwords."""
    return dict.fromkeys(env, "…") if isinstance(env, Mapping) else "(an output)"


def environment_arguments() -> dict[str, float]:
    """The arguments that the environment sets for one call.

    Raises:
        SpecError: `TFDEPLOY_WAIT` is not a duration.
    """
    text = os.environ.get("TFDEPLOY_WAIT")
    try:
        return {} if text is None else {"wait": seconds(text)}
    except ValueError:
        raise SpecError("TFDEPLOY_WAIT", f"{text!r} is not a valid duration", f"It takes {DURATION_FORM}.") from None
