"""The configuration of the stack, in its program and in the processes of its dynamic providers. None of it goes into a state."""

from typing import Any

import pulumi
from pulumi.dynamic import Config, ConfigureRequest, ResourceProvider

from ..component.plugin_exit import follow_engine
from ..component.tracebacks import is_plugin

_of_provider: list[Config] = []
"""The configuration of the stack in a process of dynamic providers; none in a program, and in the command."""


class StackProvider(ResourceProvider):
    """A dynamic provider that knows the configuration of its stack, and ends with the engine."""

    serialize_as_secret_always = False

    def configure(self, req: ConfigureRequest) -> None:
        """Store it for the process, which is that of one stack. Secrets are in clear."""
        _of_provider[:] = [req.config]
        if is_plugin():
            follow_engine()


def is_provider() -> bool:
    """Whether this is a process of dynamic providers."""
    return bool(_of_provider)


def value(namespace: str, name: str) -> Any:
    """The value of `NAMESPACE:NAME`; None where it is not set, and in the command. Lists and mappings may be JSON."""
    if _of_provider:
        return _of_provider[0].get(f"{namespace}:{name}")
    return pulumi.Config(namespace).get(name)
