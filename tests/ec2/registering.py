"""What a cluster on EC2 registers: the component under Pulumi's mocks, prepared against an account of moto's in this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pulumi.output import Unknown

from tests.components.mocked import SECRET, declare, run
from tests.ec2.preparing import arguments

UNKNOWN = "not known yet"
"""An input whose value is known only after another resource is created."""


class Registered(NamedTuple):
    """One resource, as Pulumi was asked for it."""

    kind: str
    name: str
    inputs: dict[str, Any]
    """With Pulumi's secrets as they are on the wire."""

    @property
    def plain(self) -> dict[str, Any]:
        """Its inputs as rules read them."""
        found: dict[str, Any] = plain(self.inputs)
        return found


def plain(value: Any) -> Any:
    """Secrets opened, and what is unknown named so."""
    if isinstance(value, Unknown):
        return UNKNOWN
    if isinstance(value, Mapping):
        return plain(value["value"]) if SECRET in value else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def registered(home: Path, preview: bool = False, **args: Any) -> list[Registered]:
    """All that a cluster makes Pulumi register, in its order; the arguments are those of `prepare`."""
    monitor = run(lambda: declare(**arguments(home, **args)), preview)
    return [Registered(monitor.maker.kinds[name], name, inputs) for name, inputs in monitor.inputs.items()]
