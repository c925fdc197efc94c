"""Machines whose boot failed: how often in a row, and when it is given up. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import SpecError

MOST = 3
"""So many failed boots in a row of the same kind are enough."""

_REMEDY = "Choose another ami, instance_type or subnet_id; or run `pulumi destroy`, and begin again"


@dataclass(frozen=True)
class Kind:
    """What a machine is made of, as far as another one of the same is likely to fail too."""

    instance_type: str
    image_id: str
    subnet_id: str


@dataclass(frozen=True)
class Failure:
    """The last failed boot of a machine that has not become ready since."""

    instance_id: str
    life: str
    kind: Kind
    reason: str
    console: str
    """The end of what it wrote there."""
    times: int = 1
    """How often in a row, of this kind."""

    @property
    def words(self) -> str:
        """For the preview."""
        return f"its boot failed ({self.times} of {MOST})"


def after(before: Failure | None, failed: Failure) -> Failure:
    """What is remembered when a boot has failed; a machine that is looked at twice has failed once."""
    if before is None or before.kind != failed.kind:
        return failed
    return replace(failed, times=before.times + (before.instance_id != failed.instance_id))


def of(before: Failure | None, instance_id: str) -> Failure | None:
    """The failure, unless it was that of another machine than the one that stands; empty for none."""
    return before if before and instance_id in ("", before.instance_id) else None


def refuse(where: str, made: Mapping[str, Kind], failures: Mapping[str, Failure]) -> None:
    """Machines that are to be made must not have failed too often.

    Raises:
        SpecError: one has, with the reason and the end of its console.
    """
    for machine, kind in made.items():
        failure = failures.get(machine)
        if failure and failure.kind == kind and failure.times >= MOST:
            wrong = (
                f"{machine} failed to boot {failure.times} times in a row "
                f"({kind.instance_type}, {kind.image_id}, {kind.subnet_id}): {failure.reason}"
            )
            raise SpecError(where, wrong, f"{_REMEDY}.{_told(failure.console)}")


def _told(console: str) -> str:
    return f" The end of its console:\n{console}" if console else " Its console was empty."
