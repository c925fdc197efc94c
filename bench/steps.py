"""Training steps a second: the MNIST program as a cluster of tfdeploy's while `up` waits, and the same started by hand.

How fast a training goes differs from start to start and from minute to minute, by more than what is to be measured. So
both trainings stand at once, and by turns of a few seconds all processes of one are stopped while the other goes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil

from tfdeploy.backends.local.supervisor import marked

from . import mnist
from .baselines.by_hand import ByHand
from .engine import CLUSTER, UP, Workplace, project, workplace
from .pairs import by_turns
from .standing import output, until
from .table import Row, ratio

_ROUNDS = 3
_PAIRS = 10
_TURN = 5.0
_SETTLE = 0.5
_WARM_UP = 500
_HOSTNAMES = [f"worker-{index}" for index in range(mnist.WORKERS)]

Read = Callable[[], Sequence[str]]


def run() -> list[Row]:
    """Some rounds, each with both trainings started anew."""
    mine: list[float] = []
    other: list[float] = []
    for number in range(1, _ROUNDS + 1):
        with workplace() as place:
            found = _round(place, f"steps a second, round {number}")
            mine += found[0]
            other += found[1]
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

        def ours() -> list[str]:
            return [output(made.home, name).decode() for name in _HOSTNAMES]

        _warm_up(ours)
        up = psutil.Process(call.process.pid)
        cluster = [up, *up.children(recursive=True), *marked(made.home)]
        with _stopped(cluster):
            hand = [*command, f"--train_dir={place.folder / 'train'}"]
            with ByHand(made.code, place.folder / "logs", mnist.WORKERS, hand) as started:

                def peer() -> list[str]:
                    return [started.log(name).read_text() for name in _HOSTNAMES]

                _warm_up(peer)
                by_hand = [psutil.Process(pid) for pid in started.pids]
                with _stopped(by_hand):
                    return by_turns(_PAIRS, what, lambda: _turn(cluster, ours), lambda: _turn(by_hand, peer))


def _warm_up(read: Read) -> None:
    until(lambda: any(step > _WARM_UP for _, step in mnist.steps(read())), f"{_WARM_UP} training steps")


def _turn(processes: Sequence[psutil.Process], read: Read) -> float:
    """Let one training go for a while; its steps a second."""
    _send(processes, psutil.Process.resume)
    begun = time.time() + _SETTLE
    time.sleep(_SETTLE + _TURN)
    _send(processes, psutil.Process.suspend)
    return mnist.rate(read(), begun)


@contextmanager
def _stopped(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """While inside, the processes stand still, but for their turns."""
    _send(processes, psutil.Process.suspend)
    try:
        yield
    finally:
        _send(processes, psutil.Process.resume)


def _send(processes: Sequence[psutil.Process], do: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            do(process)
