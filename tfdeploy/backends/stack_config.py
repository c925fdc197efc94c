"""The configuration of the stack, in its program and in the processes of its dynamic providers. None of it goes into a state."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import Config, ConfigureRequest, DiffResult, ResourceProvider

from ..program.plugin_exit import follow_engine
from ..program.tracebacks import is_plugin
from .base import same_cluster

_of_provider: list[Config] = []
"""The configuration of the stack in a process of dynamic providers; none in a program, and in the command."""


def plain_values(value: Any) -> Any:
    """A value with 2 for 2.0, at every depth, because Pulumi passes all numbers as floats; without the provider of a resource."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain_values(item) for key, item in value.items() if key != "__provider"}
    return [plain_values(item) for item in value] if isinstance(value, list) else value


class StackProvider(ResourceProvider):
    """A dynamic provider that knows the configuration of its stack, and ends with the engine."""

    serialize_as_secret_always = False

    def configure(self, req: ConfigureRequest) -> None:
        """Store it for the process, which is that of one stack. Secrets are in clear."""
        _of_provider[:] = [req.config]
        if is_plugin():
            follow_engine()


def changed_inputs(olds: dict[str, Any], news: dict[str, Any], replaces: Sequence[str]) -> DiffResult:
    """The difference of all inputs that are set; another one of `replaces` is another resource. That of a cluster's words is none."""
    old, new = plain_values(olds), plain_values(news)
    changed = [key for key in new if new[key] is not None and new[key] != old.get(key)]
    replaced = [key for key in changed if key in replaces]
    if "cluster" in replaced and same_cluster(old["cluster"], new["cluster"]):
        replaced.remove("cluster")
    return DiffResult(changes=bool(changed), replaces=replaced, delete_before_replace=bool(replaced))


def is_provider() -> bool:
    """Whether this is a process of dynamic providers."""
    return bool(_of_provider)


def value(namespace: str, name: str) -> Any:
    """The value of `NAMESPACE:NAME`; None where it is not set, and in the command. Lists and mappings may be JSON."""
    if _of_provider:
        return _of_provider[0].get(f"{namespace}:{name}")
    return pulumi.Config(namespace).get(name)
