"""The contract of a backend that a run can move from and to, and the types that cross it."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, Protocol

from ..agent.record.record import Record
from ..errors import BackendError
from .base import ClusterRef, RunProps
from .controller_calls import ControllerApi


class MovedRunProps(RunProps):
    """The inputs of a run that has a newer record elsewhere, or had: on other backends, or on this computer (`carried_record`)."""

    moved_from: list[ClusterRef]
    """The cluster at its other places."""
    replacement: NotRequired[dict[str, Any]]
    """`plan.replacement.Replacement` where machines of this place are replaced."""


@dataclass(frozen=True)
class StoppedRun:
    """What a place has of a run that was stopped to be moved."""

    folder: Path
    """The record on this computer, or its copy."""
    is_current: bool
    """Whether the controller has responded, so that the record is whole. Else it is what this computer had of it."""

    @property
    def record(self) -> Record:
        """The record in this folder."""
        return Record(self.folder)


def not_stopped(cluster: ClusterRef) -> BackendError:
    """The error for tasks that still run: at two places at once they would train from one checkpoint."""
    where = f"the tasks of the run on {cluster['backend']} have not stopped, so it does not move"
    return BackendError(
        f"{cluster['name']}: {where}. Run `pulumi up` again, or set tfdeploy:backend to {cluster['backend']} to stay there"
    )


class RunMover(Protocol):
    """Stops a run at its former place, and brings its record to another one."""

    def stop(self, cluster: ClusterRef) -> StoppedRun:
        """Stop the run because it moves, wait until its tasks have ended, and copy its record to this computer. BackendError: this is
        not the place that has it."""

    def note_move(self, cluster: ClusterRef, to: str) -> None:
        """Store in the record at this place that another backend has it now. Nothing, if the controller does not respond."""

    def controller(self, props: RunProps) -> AbstractContextManager[ControllerApi]:
        """Create the controller, if it does not exist, and wait until it responds."""
