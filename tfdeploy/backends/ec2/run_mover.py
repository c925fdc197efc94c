"""Runs that move from and to machines of EC2."""

from contextlib import AbstractContextManager, suppress

from ...errors import BackendError, SpecError
from ..base import ClusterRef, RunProps
from ..controller_calls import ControllerApi
from ..docker.run_mover import DockerRunMover
from ..run_mover import StoppedRun
from . import record_bucket
from .aws import account


class Ec2RunMover:
    """The contract is `backends.run_mover.RunMover`."""

    def __init__(self, mover: DockerRunMover) -> None:
        self._docker = mover

    def stop(self, cluster: ClusterRef) -> StoppedRun:
        """As on `docker`. Where the machines have terminated themselves, their record is in the bucket, and the run has ended."""
        with account.of(cluster):
            stopped = self._docker.stop(cluster)
            if not stopped.is_current:
                with suppress(BackendError, SpecError):
                    record_bucket.download(cluster)
            return stopped

    def note_move(self, cluster: ClusterRef, to: str) -> None:
        """As on `docker`."""
        with account.of(cluster):
            self._docker.note_move(cluster, to)

    def controller(self, props: RunProps) -> AbstractContextManager[ControllerApi]:
        """As on `docker`."""
        return self._docker.controller(props)
