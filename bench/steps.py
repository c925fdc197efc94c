"""Training steps a second: the MNIST program as a cluster of tfdeploy's while `up` waits, and the same started by hand.

How fast a training goes differs from start to start and from minute to minute, by more than what is to be measured. So
both trainings stand at once, and by turns of a few seconds all processes of one are stopped while the other goes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from tfdeploy.backends.local.supervisor import marked

from . import mnist
from .baselines.by_hand import ByHand
from .engine import CLUSTER, UP, Workplace, project, workplace
from .pairs import by_turns
from .standing import output, until
from .table import Row, ratio

HOSTNAMES = [f"worker-{index}" for index in range(mnist.WORKERS)]

_ROUNDS = 3
_PAIRS = 10
_TURN = 5.0
_SETTLE = 0.5
_WARM_UP = 500


@dataclass(frozen=True)
class Training:
    """One of the two, and how it is made to go and to stand still."""

    read: Callable[[], Sequence[str]]
    """What each worker has printed."""
    go: Callable[[], None]
    stop: Callable[[], None]

    def warm_up(self) -> None:
        """Wait until it trains at its own pace."""
        until(lambda: any(step > _WARM_UP for _, step in mnist.steps(self.read())), f"{_WARM_UP} training steps")

    def turn(self) -> float:
        """Let it go for a while; its steps a second."""
        self.go()
        begun = time.time() + _SETTLE
        time.sleep(_SETTLE + _TURN)
        ended = time.time()
        said = self.read()
        self.stop()
        return mnist.rate(said, begun, ended)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While inside it stands still, but for its turns."""
        self.stop()
        try:
            yield
        finally:
            self.go()


def alternate(ours: Training, peer: Training, what: str) -> tuple[list[float], list[float]]:
    """The turns; both have been stopped."""
    return by_turns(_PAIRS, what, ours.turn, peer.turn)


def rounds(each: Callable[[Workplace, str], tuple[list[float], list[float]]]) -> tuple[list[float], list[float]]:
    """Some rounds, each with both trainings started anew."""
    mine: list[float] = []
    other: list[float] = []
    for number in range(1, _ROUNDS + 1):
        with workplace() as place:
            found = each(place, f"steps a second, round {number}")
            mine += found[0]
            other += found[1]
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
        found: list[psutil.Process] = []
        ours = Training(
            lambda: [output(made.home, name).decode() for name in HOSTNAMES],
            lambda: resume(found),
            lambda: suspend(found),
        )
        ours.warm_up()
        found += [*family(call.process.pid), *marked(made.home)]
        with ours.stopped():
            hand = [*command, f"--train_dir={place.folder / 'train'}"]
            with ByHand(made.code, place.folder / "logs", mnist.WORKERS, hand) as started:
                by_hand = [psutil.Process(pid) for pid in started.pids]
                peer = Training(
                    lambda: [started.log(name).read_text() for name in HOSTNAMES],
                    lambda: resume(by_hand),
                    lambda: suspend(by_hand),
                )
                peer.warm_up()
                with peer.stopped():
                    return alternate(ours, peer, what)


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it has started."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def resume(processes: Sequence[psutil.Process]) -> None:
    """Let them go."""
    _each(processes, psutil.Process.resume)


def suspend(processes: Sequence[psutil.Process]) -> None:
    """Stop them where they are."""
    _each(processes, psutil.Process.suspend)


def _each(processes: Sequence[psutil.Process], do: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            do(process)
