"""Training steps a second: the MNIST program as a cluster of tfdeploy's while `up` waits, and the same started by hand.

The speed of a training differs from start to start and from minute to minute, by more than what is to be measured. So
both trainings exist at once, and by turns of a few seconds all processes of one are stopped while the other runs.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

from tfdeploy.backends.local.supervisor import marked

from . import mnist
from .baselines.by_hand import ByHand
from .ending import undisturbed
from .engine import CLUSTER, UP, Workplace, project, workplace
from .halting import Handle, halt, of_processes, release
from .observed import Cluster, output
from .pairs import by_turns
from .processes import Watched, family, until
from .table import Row, ratio

HOSTNAMES = [f"worker-{index}" for index in range(mnist.WORKERS)]

ROUNDS = 3
_PAIRS = 10
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


def alternate(ours: Training, peer: Training, what: str) -> tuple[list[float], list[float]]:
    """The turns; both have been stopped."""
    return by_turns(_PAIRS, what, ours.turn, peer.turn)


def rounds(
    each: Callable[[Workplace, str], tuple[list[float], list[float]]], count: int = ROUNDS
) -> tuple[list[float], list[float]]:
    """Some rounds, each with both trainings started again."""
    mine: list[float] = []
    other: list[float] = []
    for number in range(1, count + 1):
        with workplace() as place:
            ratios = each(place, f"steps a second, round {number}")
            mine += ratios[0]
            other += ratios[1]
    return mine, other


def run() -> list[Row]:
    """Processes of this machine."""
    mine, other = rounds(_round)
    measure = "training steps a second on `local` while `up` waits, 1 ps + 2 workers, against a start by hand"
    return [ratio(measure, mine, other, 0.98, unit=" steps/s", at_least=True)]


def _round(place: Workplace, what: str) -> tuple[list[float], list[float]]:
    command = mnist.command(mnist.ENDLESS)
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", *command],
        "tfdeploy:wait": "1h",
    }
    with project(place, CLUSTER, "ours", config) as made:
        mnist.lay_out(made.code)
        call = made.start(*UP)
        ours = Training(lambda: [output(made.home, name).decode() for name in HOSTNAMES], [Cluster(made.home), call])
        ours.warm_up()
        with ours.stopped(of_processes([*family(call.pid), *marked(made.home)])):
            hand = [*command, f"--train_dir={place.folder / 'train'}"]
            with ByHand(made.code, place.folder / "logs", mnist.WORKERS, hand) as started:
                peer = Training(lambda: [started.log(name).read_text() for name in HOSTNAMES], [started])
                peer.warm_up()
                with peer.stopped(of_processes([psutil.Process(pid) for pid in started.pids])):
                    return alternate(ours, peer, what)
