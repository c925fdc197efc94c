"""One command on a cluster, from the first resource to the last: follows it, ends it, takes the cluster away."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from ..errors import CommandError, NotFound
from .asking import NOT_OVER, UNREACHABLE, tell
from .calls import Call, Engine
from .commanding import exit_code
from .following import Follower, Line
from .looking import Seen, over

_POLL_SECONDS = 0.3
_INTERRUPT_SECONDS = 30.0
_LOST_SECONDS = 60.0
"""How long neither engine nor keeper may answer before the cluster is taken for lost."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Abandoned(Exception):
    """A second signal: there is to be no more waiting."""

    def __init__(self, code: int, goes_on: bool) -> None:
        super().__init__(code)
        self.code = code
        self.goes_on = goes_on
        """Whether the removal has begun, and goes on by itself."""


@dataclass
class Outcome:
    """How it went."""

    code: int
    seen: Seen | None
    """The last look; None where there was nothing to look at."""


class Foreground:
    """One call, in the foreground."""

    def __init__(self, call: Call, show: Callable[[Line], None], seconds: float, keep: bool, shown: bool) -> None:
        """`seconds` is how long the job may take; `shown`, whether Pulumi's own output is."""
        self._call = call
        self._show = show
        self._seconds = seconds
        self._keep = keep
        self._engine = Engine(call, shown)
        self._follower: Follower | None = None
        self._seen: Seen | None = None
        self._code = 1
        self._told = 0
        self._mute = False
        self._said = False
        self._complete = False
        self._removing = False
        self._silent_since: float | None = None
        self._lost = False

    def run(self) -> Outcome:
        """All of it.

        Raises:
            Abandoned: a second signal came.
            SpecError: the cluster was refused.
            CommandError: Pulumi failed.
        """
        with self._heeding():
            try:
                self._stand()
                self._follow()
            except Abandoned:
                raise
            except BaseException:
                self._remove()
                raise
            if self._lost:
                self._remove_lost()
            elif not self._keep or self._told:
                self._remove()
        return Outcome(128 + self._told if self._told else self._code, self._seen)

    def _stand(self) -> None:
        self._engine.start("up")
        while not self._engine.ended(_POLL_SECONDS):
            if self._told:
                self._say_so()
                self._engine.interrupt()
                self._engine.ended(_INTERRUPT_SECONDS)
                self._engine.interrupt()
        if not self._told:
            self._engine.demand("`pulumi up`")

    def _follow(self) -> None:
        deadline = time.monotonic() + self._seconds
        while not self._told:
            seen = self._look()
            if seen is not None and over(seen):
                self._code, self._complete = exit_code(seen.sight.view["job"]), True
                self._print(self._follower.rest() if self._follower else [])
                return
            if time.monotonic() > deadline:
                self._code = NOT_OVER
                return
            if self._is_lost(seen):
                tell(
                    f"tfdeploy run: the cluster has not answered for {_LOST_SECONDS:g} s: it is lost, and is taken away"
                )
                self._code, self._lost = UNREACHABLE, True
                return
            time.sleep(_POLL_SECONDS)

    def _is_lost(self, seen: Seen | None) -> bool:
        """Whether nobody there has answered for long."""
        silent = seen is not None and seen.sight.engine is None and seen.sight.keeper_silent_since is not None
        if not silent:
            self._silent_since = None
            return False
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        return now - self._silent_since >= _LOST_SECONDS

    def _remove_lost(self) -> None:
        """Take away what there may be of it; who cannot be reached may keep it."""
        try:
            self._remove()
        except CommandError as error:
            stack = self._call.stack
            tell(f"tfdeploy run: {error}\nOnce it can be reached, `tfdeploy run --remove {stack}` removes what stays.")

    def _remove(self) -> None:
        self._removing = True
        self._engine.start("destroy")
        while not self._engine.ended(_POLL_SECONDS):
            self._say_so()
            self._print(self._follower.lines() if self._follower else [])
        if not self._complete:
            self._look()
            self._print(self._follower.rest() if self._follower else [])
        self._engine.demand("`pulumi destroy`")
        self._call.forget()

    def _say_so(self) -> None:
        if self._told and not self._said and not self._mute:
            self._said = True
            tell(f"tfdeploy run: {signal.Signals(self._told).name}: stopping the job and taking the cluster away")

    def _look(self) -> Seen | None:
        """One look, and what was printed until then."""
        try:
            self._follower = self._follower or Follower(self._call.entry)
            self._seen = self._follower.look()
        except NotFound:
            return None
        self._print(self._follower.lines())
        return self._seen

    def _print(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if self._mute:
                return
            try:
                self._show(line)
            except OSError:
                # Whoever read it is gone: as for any program, that is the end.
                self._mute = True
                self._told = self._told or signal.SIGPIPE

    @contextmanager
    def _heeding(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._told:
            raise Abandoned(128 + self._told, self._removing)
        # No more than this: it may come in the midst of a print, or while a lock is held.
        self._told = number


def take_away(call: Call, shown: bool) -> None:
    """Take away a cluster that was kept, or left.

    Raises:
        CommandError: Pulumi failed.
    """
    engine = Engine(call, shown)
    engine.start("destroy")
    engine.ended(float("inf"))
    engine.demand("`pulumi destroy`")
    call.forget()
