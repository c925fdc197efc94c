"""Runs that move from and to this machine."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...errors import BackendError, Unreachable
from .. import controller_calls
from ..base import ClusterRef, RunProps
from ..controller_calls import ControllerApi
from ..run_mover import StoppedRun, not_stopped
from .paths import Places, other_machine
from .task_runner import LocalTaskRunner, controller_client, launchers_live, stop_run


class LocalRunMover:
    """The contract is `backends.run_mover.RunMover`."""

    def __init__(self, runner: LocalTaskRunner) -> None:
        self._runner = runner

    def stop(self, cluster: ClusterRef) -> StoppedRun:
        """Stop the run. Its record is read where it is."""
        places = Places(cluster["home"])
        if machine := other_machine(places):
            wrong = f"its run is on another computer (machine id {machine})"
            raise BackendError(f"{cluster['name']}: {wrong}. Move it from there, or destroy it there.")
        has_stopped = stop_run(places, "", to_move=True)
        with suppress(Unreachable):  # without its supervisord the machine has no task of the run
            if not has_stopped and launchers_live(places):
                raise not_stopped(cluster)
        return StoppedRun(places.record, is_current=True)

    def note_move(self, cluster: ClusterRef, to: str) -> None:
        """Store it in the record."""
        places = Places(cluster["home"])
        if not other_machine(places):
            with controller_client(places, places.current_token) as controller:
                controller_calls.note_move(controller, to)

    @contextmanager
    def controller(self, props: RunProps) -> Iterator[ControllerApi]:
        """Start the supervisord and the controller."""
        self._runner.start_controller(props["cluster"], props["token"])
        with controller_client(Places(props["cluster"]["home"]), props["token"]) as controller:
            controller_calls.await_controller(controller, props["cluster"]["name"])
            yield controller
