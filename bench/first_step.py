"""From the beginning of `pulumi up` to the first training step, against a bare `up` and then a start by hand."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from . import mnist
from .baselines.by_hand import by_hand
from .engine import CLUSTER, FLEET, UP, Workplace, project, workplace
from .observed import Cluster, output
from .pairs import by_turns
from .processes import Watched, until
from .table import Row, ratio

_PAIRS = 5
_SECONDS = 180.0
_WATCHED = "worker-0"


def run() -> list[Row]:
    """Everything again in each measurement: an empty stack, no process."""
    number = itertools.count()
    with workplace() as place:
        code = place.folder / "code"
        mnist.lay_out(code)
        mine, other = by_turns(
            _PAIRS,
            "first step",
            lambda: _ours(place, f"ours-{next(number)}"),
            lambda: _bare(place, f"bare-{next(number)}") + _by_hand(code, place.folder / f"hand-{next(number)}"),
        )
    measure = "first training step after `up` begins, 1 ps + 2 workers, against a bare `up` and a start by hand"
    return [ratio(measure, mine, other, 1.1)]


def _ours(place: Workplace, name: str) -> float:
    command = ["python", *mnist.command(mnist.ENDLESS)]
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": command,
        "tfdeploy:wait": "0",
    }
    with project(place, CLUSTER, name, config) as made:
        mnist.lay_out(made.code)
        begun = time.monotonic()
        call = made.start(*UP)
        ended = _first_step(lambda: output(made.home, _WATCHED).decode(), Cluster(made.home), call)
        call.finish(_SECONDS)
    return ended - begun


def _bare(place: Workplace, name: str) -> float:
    with project(place, FLEET, name, {"fleet:tasks": 1 + mnist.WORKERS}) as made:
        return made.pulumi(*UP)


def _by_hand(code: Path, folder: Path) -> float:
    begun = time.monotonic()
    command = [*mnist.command(mnist.ENDLESS), f"--train_dir={folder / 'train'}"]
    with by_hand(code, folder / "logs", mnist.WORKERS, command) as cluster:
        return _first_step(cluster.log(_WATCHED).read_text, cluster) - begun


def _first_step(printed: Callable[[], str], *watched: Watched) -> float:
    """When the program printed its first steps, by its own clock."""
    return until(lambda: mnist.steps([printed()]), "a first training step", *watched)[0][0]
