"""Training steps a second: the MNIST program as a cluster of tfdeploy's while `up` waits, and the same started by hand.

The speed of a training differs from start to start and from minute to minute, by more than what is to be measured. So
both trainings exist at once, and by turns of a few seconds all processes of one are stopped while the other runs.
Of two equal trainings, both started by hand, the one that was started first is about 3 % slower: so each is first in half of
the rounds.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

import psutil

from tfdeploy.backends.local.supervisor import marked

from . import mnist
from .baselines.by_hand import by_hand
from .ending import undisturbed
from .engine import CLUSTER, UP, Workplace, project, workplace
from .halting import Handle, halt, of_processes, release
from .observed import Cluster, output
from .pairs import by_turns
from .processes import Watched, family, until
from .table import Row, ratio

HOSTNAMES = [f"worker-{index}" for index in range(mnist.WORKERS)]

_ROUNDS = 4
_PAIRS = 8
_TURN = 5.0
_SETTLE = 0.5
_WARM_UP = 500


@dataclass(frozen=True)
class Training:
    """One of the two, and how it is stopped and continued."""

    read: Callable[[], Sequence[str]]
    """What each worker has printed."""
    watched: Sequence[Watched]
    """What fails when the training fails; the best source of the reason is first."""
    handles: list[Handle] = field(default_factory=list)
    """Its processes or containers."""

    def warm_up(self) -> None:
        """Wait until it trains at its own pace."""
        what = f"{_WARM_UP} training steps"
        until(lambda: any(step > _WARM_UP for _, step in mnist.steps(self.read())), what, *self.watched)

    def turn(self) -> float:
        """Continue it for a while; its steps a second."""
        release(self.handles)
        begun = time.monotonic() + _SETTLE
        time.sleep(_SETTLE + _TURN)
        ended = time.monotonic()
        printed = self.read()
        self.check()  # before it is halted: then its controller does not respond
        halt(self.handles)
        return mnist.rate(printed, begun, ended)

    def check(self) -> None:
        """Raise BenchError when it has failed."""
        for each in self.watched:
            each.check()

    @contextmanager
    def stopped(self, handles: Sequence[Handle]) -> Iterator[None]:
        """While inside it is stopped, except in its turns; afterwards it is continued, whatever happened inside."""
        self.handles[:] = handles
        try:
            halt(self.handles)
            yield
        finally:
            with undisturbed():
                release(self.handles)


Start = Callable[[Workplace], AbstractContextManager[Training]]
"""Starts a training; inside the context it is warm and stopped."""


def rounds(ours: Start, peer: Start, what: str) -> tuple[list[float], list[float]]:
    """The turns of so many rounds, each with both trainings started again, one of them first in every other round."""
    mine: list[float] = []
    other: list[float] = []
    for number in range(1, _ROUNDS + 1):
        with workplace() as place, ExitStack() as stack:
            starts = (ours, peer) if number % 2 else (peer, ours)
            made = {start: stack.enter_context(start(place)) for start in starts}
            turns = by_turns(_PAIRS, f"{what}, round {number}", made[ours].turn, made[peer].turn)
            mine += turns[0]
            other += turns[1]
    return mine, other


def run() -> list[Row]:
    """Processes of this machine."""
    mine, other = rounds(_ours, _by_hand, "steps a second")
    measure = "training steps a second on `local` while `up` waits, 1 ps + 2 workers, against a start by hand"
    return [ratio(measure, mine, other, 0.98, unit=" steps/s", at_least=True)]


@contextmanager
def _ours(place: Workplace) -> Iterator[Training]:
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", *mnist.command(mnist.ENDLESS)],
        "tfdeploy:wait": "1h",
    }
    with project(place, CLUSTER, "ours", config) as made:
        mnist.lay_out(made.code)
        call = made.start(*UP)
        training = Training(
            lambda: [output(made.home, name).decode() for name in HOSTNAMES], [Cluster(made.home), call]
        )
        training.warm_up()
        with training.stopped(of_processes([*family(call.pid), *marked(made.home)])):
            yield training


@contextmanager
def _by_hand(place: Workplace) -> Iterator[Training]:
    code = place.folder / "hand"
    mnist.lay_out(code)
    command = [*mnist.command(mnist.ENDLESS), f"--train_dir={place.folder / 'train'}"]
    with by_hand(code, place.folder / "logs", mnist.WORKERS, command) as started:
        training = Training(lambda: [started.log(name).read_text() for name in HOSTNAMES], [started])
        training.warm_up()
        with training.stopped(of_processes([psutil.Process(process.pid) for process in started.processes])):
            yield training
