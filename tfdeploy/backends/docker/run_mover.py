"""Runs that move from and to a Swarm."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...errors import Unreachable
from .. import controller_calls
from ..base import ClusterRef, RunProps
from ..controller_calls import ControllerApi
from ..record_copy import RecordCopy
from ..run_mover import StoppedRun, not_stopped
from .task_runner import CONTROLLER_TIMEOUT, DockerTaskRunner


class DockerRunMover:
    """The contract is `backends.run_mover.RunMover`."""

    def __init__(self, runner: DockerTaskRunner) -> None:
        self._runner = runner

    def stop(self, cluster: ClusterRef) -> StoppedRun:
        """Stop the run, and bring the copy of its record up to date."""
        record_copy, controller = RecordCopy(cluster), self._runner.controller(cluster)
        with suppress(Unreachable):
            if not self._runner.end_run(cluster, to_move=True):
                raise not_stopped(cluster)
        is_whole = record_copy.download(controller)
        return StoppedRun(record_copy.folder, is_whole and controller.current_run() is not None)

    def note_move(self, cluster: ClusterRef, to: str) -> None:
        """Store it in the record."""
        controller_calls.note_move(self._runner.controller(cluster), to)

    @contextmanager
    def controller(self, props: RunProps) -> Iterator[ControllerApi]:
        """Create or update the controller's service."""
        with self._runner.started_controller(props) as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"], CONTROLLER_TIMEOUT)
            yield controller
