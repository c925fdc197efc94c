"""One `tfdeploy run` in the foreground: creates the cluster, follows its run, removes the cluster."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from types import FrameType

from ... import registry
from ...agent.model.run_state import STOPPED
from ...backends.backend import access
from ...errors import BackendError, CommandError, NotFound
from ...report.remedies import in_words_of_run
from ..command_table import FAILED, TIMED_OUT, UNREACHABLE
from ..output import print_message
from ..snapshot import Follower, LogLine, Snapshot
from .cluster_arguments import CLUSTER, exit_code
from .stack import PROJECT, WARNINGS, Call, PulumiEngine, home

_POLL_SECONDS = 0.3
_INTERRUPT_SECONDS = 30.0
_LOST_SECONDS = 60.0
"""A cluster is lost if neither its engine nor its controller responds for this long."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending(Enum):
    """Why the session stopped following the run."""

    FINISHED = "the run has ended"
    TIMED_OUT = "the time limit is over"
    LOST = "the cluster does not respond"
    INTERRUPTED = "a signal, or the reader of the output has exited"


class Abandoned(Exception):
    """A second signal: exit without waiting for the removal."""

    def __init__(self, code: int, removing: bool) -> None:
        super().__init__(code)
        self.code = code
        self.removing = removing
        """Whether the removal has started; then it continues without us."""


@dataclass(frozen=True)
class Outcome:
    """The end of a session."""

    code: int
    snapshot: Snapshot | None
    """The last snapshot; None if the cluster was never created."""


class Session:
    """One call of `tfdeploy run`: from the first resource to the last."""

    def __init__(self, call: Call, print_line: Callable[[LogLine], None], seconds: float, verbose: bool) -> None:
        """`seconds` is the time limit of the run. `verbose` shows the output of Pulumi."""
        self._call = call
        self._print_line = print_line
        self._seconds = seconds
        self._engine = PulumiEngine(call, verbose)
        self._follower: Follower | None = None
        self._snapshot: Snapshot | None = None
        self._is_removing = False
        self._reader_is_there = True
        self._cluster_announced = self._removal_announced = False
        self._warnings = 0
        self._signal: int | None = None
        """The first signal; it interrupts the run."""

    def run(self) -> Outcome:
        """Go through all phases.

        Raises:
            Abandoned: there was a second signal.
            SpecError: the cluster was refused.
            CommandError: Pulumi failed.
        """
        with self._signal_handlers():
            try:
                self._create()
                ending = self._follow()
            except Abandoned:
                raise
            except BaseException:
                self._remove(finished=False)
                raise
            if ending is Ending.TIMED_OUT and not self._call.keep:
                self._stop_training()
            if ending is Ending.LOST:
                self._remove_lost()
            elif not self._call.keep or self._signal is not None:
                self._remove(finished=ending is Ending.FINISHED)
        return Outcome(self._exit_code(ending), self._snapshot)

    def _exit_code(self, ending: Ending) -> int:
        if self._signal is not None:
            return 128 + self._signal
        if ending is Ending.FINISHED or (ending is Ending.TIMED_OUT and self._has_result()):
            return exit_code(self._snapshot.run_state if self._snapshot else None)
        return {Ending.TIMED_OUT: TIMED_OUT, Ending.LOST: UNREACHABLE}.get(ending, FAILED)

    def _has_result(self) -> bool:
        """Whether the run had its result before the time limit: after a success, other workers have time left to end by themselves."""
        run = self._snapshot.run_state if self._snapshot else None
        return run is not None and run.result is not None and run.result.state != STOPPED

    def _create(self) -> None:
        self._engine.up()
        while not self._engine.wait(_POLL_SECONDS):
            self._announce_cluster()
            if self._signal is not None:
                self._announce_removal()
                self._engine.interrupt()
                self._engine.wait(_INTERRUPT_SECONDS)
                self._engine.interrupt()
        self._announce_cluster()
        if self._signal is None:
            self._engine.check("`pulumi up`")

    def _follow(self) -> Ending:
        deadline = time.monotonic() + self._seconds
        last_response = time.monotonic()
        while self._signal is None:
            snapshot = self._take_snapshot()
            now = time.monotonic()
            if snapshot is not None and snapshot.is_finished:
                self._print(self._follower.unfinished_lines() if self._follower else [])
                return Ending.FINISHED
            if now > deadline:
                return Ending.TIMED_OUT
            observed = snapshot.observed if snapshot else None
            if observed is None or observed.engine is not None or observed.controller_silent_since is None:
                last_response = now
            elif now - last_response >= _LOST_SECONDS:
                print_message(f"tfdeploy run: no response from the cluster for {_LOST_SECONDS:g} s; removing it")
                return Ending.LOST
            time.sleep(_POLL_SECONDS)
        return Ending.INTERRUPTED

    def _stop_training(self) -> None:
        """Stop the run with the reason that its record shows. The removal stops it too, where the controller does not respond now."""
        cluster = self._call.entry.cluster
        with suppress(BackendError):
            access(cluster["backend"]).stop_training(cluster, self._seconds)

    def _remove_lost(self) -> None:
        """Remove as much as possible of a cluster that may be unreachable."""
        try:
            self._remove(finished=False)
        except CommandError as error:
            remedy = (
                f"When the cluster is reachable again, `tfdeploy run --remove {self._call.stack}` removes the rest."
            )
            print_message(f"tfdeploy run: {error}\n{remedy}")

    def _remove(self, finished: bool) -> None:
        """Remove the cluster; print the log lines of its last moments unless the run was finished."""
        self._is_removing = True
        self._engine.destroy()
        while not self._engine.wait(_POLL_SECONDS):
            self._announce_removal()
            self._print(self._follower.lines() if self._follower else [])
        if not finished:
            self._take_snapshot()
            self._print(self._follower.unfinished_lines() if self._follower else [])
        self._engine.check("`pulumi destroy`")
        self._call.forget()

    def _announce_cluster(self) -> None:
        """Print, once, the name of the cluster when it was not refused, and the warnings."""
        stack = self._call.stack
        if not self._cluster_announced and registry.find(PROJECT, stack, CLUSTER) is not None:
            self._cluster_announced = True
            print_message(f"tfdeploy run: the cluster is {stack}: tfdeploy status --cwd {home()} --stack {stack}")
        file = self._call.file(WARNINGS)
        if file.exists():
            warnings = file.read_text(encoding="utf-8").splitlines()
            for line in warnings[self._warnings :]:
                print_message(f"tfdeploy run: warning: {in_words_of_run(line)}")
            self._warnings = len(warnings)

    def _announce_removal(self) -> None:
        """Print, once, that a signal has interrupted the run."""
        if self._signal is not None and self._reader_is_there and not self._removal_announced:
            self._removal_announced = True
            name = signal.Signals(self._signal).name
            print_message(f"tfdeploy run: {name}: stopping the run and removing the cluster")

    def _take_snapshot(self) -> Snapshot | None:
        """Observe the cluster, and print the log lines until now."""
        try:
            self._follower = self._follower or Follower(self._call.entry)
            self._snapshot = self._follower.take_snapshot()
        except NotFound:
            return None
        self._print(self._follower.lines())
        return self._snapshot

    def _print(self, lines: Sequence[LogLine]) -> None:
        """Print log lines until their reader exits: as for any program, that ends the run (SIGPIPE)."""
        try:
            for line in lines if self._reader_is_there else ():
                self._print_line(line)
        except OSError:
            self._reader_is_there = False
            self._signal = self._signal or signal.SIGPIPE

    @contextmanager
    def _signal_handlers(self) -> Iterator[None]:
        handlers = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._signal is not None:
            raise Abandoned(128 + self._signal, self._is_removing)
        # Nothing else is done here: a signal may interrupt a print or the holder of a lock.
        self._signal = number


def remove_cluster(call: Call, verbose: bool) -> None:
    """Remove the cluster of an earlier `tfdeploy run`.

    Raises:
        CommandError: Pulumi failed.
    """
    engine = PulumiEngine(call, verbose)
    engine.destroy()
    engine.wait()
    engine.check("`pulumi destroy`")
    call.forget()
