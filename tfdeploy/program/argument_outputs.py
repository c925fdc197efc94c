"""Awaits the Outputs among the arguments of a cluster: other resources of the program, or other stacks, compute them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

import pulumi
from pulumi.output import Unknown as PulumiUnknown

from ..backends.stack_config import plain_values
from ..errors import SpecError
from ..identity import stored_cluster
from ..spec.cluster import GROUPS, cluster_spec
from ..spec.environment import secret_texts
from ..spec.unknown_values import Unknown, undecided, unknowns

_FOLDERS = ("train_dir", "data_dir")
_ITEM = re.compile(r"\[\d+\].*")
"""The items of a list: an error is reported of the whole list."""

_IN_GROUP = re.compile(rf"(jobs\.\w+\.)?({'|'.join(GROUPS)})\.")
_LISTED = (
    "what it lists as deleted is decided by the update. If the cluster is protected, use `pulumi up --skip-preview`"
)
_SECRET_REMEDY = (
    "Put a secret into the cluster's `secrets` or `env`. Where the value is not secret, use pulumi.Output.unsecret."
)


@dataclass(frozen=True)
class AwaitedArgs:
    """The arguments of a cluster without Outputs, but for the values of `secrets` and the secret ones of `env`."""

    args: Mapping[str, Any]
    """What a preview does not know is `Unknown`."""
    resources: tuple[pulumi.Resource, ...]
    """The resources that have these Outputs."""


def has_outputs(args: Mapping[str, Any]) -> bool:
    """Whether an argument must be awaited. The values of `secrets` need not be: nothing is planned from them."""
    return any(_has_output(value) for key, value in args.items() if not _is_secrets(key, value))


async def awaited(name: str, args: Mapping[str, Any]) -> AwaitedArgs:
    """Await all Outputs among the arguments of the cluster `name`.

    Raises:
        SpecError: a secret is in an argument that is stored in plain text, or a folder is not a URL.
    """
    reader = _Reader(name)
    values = {key: value if _is_secrets(key, value) else await reader.value(key, value) for key, value in args.items()}
    return AwaitedArgs(values, tuple(reader.resources))


def is_undecided(name: str, component: str, args: Mapping[str, Any], register_stored: Callable[[], bool]) -> bool:
    """Whether the cluster cannot be planned yet, which is then reported. `component` is the type of the component.

    In a preview `register_stored` registers the resources of a cluster that exists as they are, if it can.

    Raises:
        SpecError: another argument is not valid; or, in an update, the cluster exists: without its resources, Pulumi would
            delete them.
    """
    is_preview = pulumi.runtime.is_dry_run()
    missing = undecided(args) if is_preview else unknowns(args)
    if not missing:
        return False
    names = ", ".join(f"`{item.what}`" for item in missing)
    exists = stored_cluster(name, component) is not None
    if is_preview:
        _refuse_others(name, args, missing)
        effect = "the update creates it, or refuses it"
        if exists:
            effect = "its resources are shown as they are now" if register_stored() else _LISTED
        pulumi.log.info(
            f"{name}: this preview cannot show the cluster, because only the update knows {names}; {effect}."
        )
    elif exists:
        wrong = "is not known, because what it comes from was not created in this update"
        raise SpecError(f"{name}: {missing[0].what}", wrong, "Create that first, or include it in this update.")
    else:
        pulumi.log.warn(f"{name}: the cluster is not created, because what {names} comes from was not created.")
    return True


def _refuse_others(name: str, args: Mapping[str, Any], missing: Sequence[Unknown]) -> None:
    """Refuse arguments that are not valid, whatever the unknown ones will be. Where those are not in a group, that is not known:
    a job with an unknown number of tasks may exist or not.

    Raises:
        SpecError: an argument is not valid.
    """
    if not all(_IN_GROUP.match(item.what) for item in missing):
        return
    try:
        cluster_spec(name, args)
    except SpecError as error:
        if error.where.rpartition(": ")[2] not in [_ITEM.sub("", item.what) for item in missing]:
            raise


def _is_secrets(key: str, value: Any) -> bool:
    return key == "secrets" and isinstance(value, Mapping)


def _has_output(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_output, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_output, value))
    return isinstance(value, pulumi.Output) or isawaitable(value)


class _Reader:
    """Awaits values, and collects the resources that have these Outputs."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self.resources: dict[pulumi.Resource, None] = {}

    async def value(self, path: str, value: Any) -> Any:
        """A value without Outputs, at every depth."""
        if isawaitable(value):
            value = pulumi.Output.from_input(value)
        if isinstance(value, pulumi.Output):
            return await self._output(path, value)
        if isinstance(value, PulumiUnknown):
            return Unknown(path)
        if isinstance(value, Mapping):
            return {key: await self.value(f"{path}.{key}", item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [await self.value(f"{path}[{index}]", item) for index, item in enumerate(value)]
        return value

    async def _output(self, path: str, output: pulumi.Output[Any]) -> Any:
        is_secret, is_known = await output.is_secret(), await output.is_known()
        if is_secret and path.startswith("env."):
            return output
        value = await output.future(with_unknowns=True)
        self.resources.update(dict.fromkeys(await output.resources()))
        if is_secret and path == "env" and isinstance(value, Mapping):
            return secret_texts(value)
        if is_secret and path != "secrets" and (is_known or path != "env"):
            raise SpecError(
                f"{self._cluster}: {path}", "is secret, but this argument is stored in plain text", _SECRET_REMEDY
            )
        if not is_known and not isinstance(value, (Mapping, list, tuple)):
            return Unknown(path)
        value = plain_values(await self.value(path, value))
        if path in _FOLDERS and value and "://" not in str(value):
            wrong = f"the Output has the value {value!r}, which is not a URL"
            remedy = "Use a URL, or write the folder as a string: a preview must be able to check it."
            raise SpecError(f"{self._cluster}: {path}", wrong, remedy)
        return value


def with_unknown_outputs(value: Any) -> Any:
    """A value of resources, with an Output that a preview does not know for each unknown value."""
    if isinstance(value, Mapping):
        return {key: with_unknown_outputs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_unknown_outputs(item) for item in value]
    return unknown_output() if isinstance(value, Unknown) else value


def unknown_output() -> pulumi.Output[Any]:
    """An Output that a preview does not know."""
    unknown: Any = pulumi.UNKNOWN
    return pulumi.Output.from_input(unknown)
