"""From an edited program to its first line on Docker: `pulumi up`, against a build of the image and `docker stack deploy`.

There is nothing to gain by TensorFlow's import, which takes as long in both: so the program only prints and waits. The peer's
containers have an init, so that they stop at once.
"""

import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.engine.images import python_image

from . import mnist
from .baselines.containers import Services, Stack
from .engine import STACK, TASKS, UP, workplace
from .needs import image_of
from .pairs import by_turns
from .processes import Watched, until
from .swarm import on_swarm
from .table import Row, ratio

_PAIRS = 5
_WATCHED = "worker-0"


def run() -> list[Row]:
    """Both run; by turns each gets an edited program."""
    image = image_of(python_image)
    config = {
        "tfdeploy:ps": 1,
        "tfdeploy:workers": mnist.WORKERS,
        "tfdeploy:command": ["python", "train.py"],
        "tfdeploy:wait": "0",
    }
    edits = itertools.count()
    with workplace() as place, on_swarm(place, "ours", image, config) as cluster:
        code = place.folder / "image"
        code.mkdir()
        stack = Stack(f"{STACK}-stack", image, code, mnist.WORKERS, ["train.py"])

        def ours() -> float:
            return _edited(
                cluster.made.code,
                next(edits),
                lambda: cluster.made.pulumi(*UP),
                lambda: cluster.outputs([_WATCHED])[0],
                cluster,
            )

        def peer() -> float:
            return _edited(code, next(edits), stack.up, lambda: stack.output(_WATCHED), Services(stack.label))

        try:
            ours()
            peer()
            mine, other = by_turns(_PAIRS, "edit to running", ours, peer)
        finally:
            stack.remove()
    measure = "an edited program to its first line on Docker, 1 ps + 2 workers, no image rebuild"
    return [ratio(f"{measure}, against `docker build` and `docker stack deploy`", mine, other, 0.6)]


def _edited(
    code: Path, number: int, bring: Callable[[], object], printed: Callable[[], str], watched: Watched
) -> float:
    """Seconds from the edit until the program prints that it is the edited one, by its own clock."""
    text = (TASKS / "edited.py").read_text()
    (code / "train.py").write_text(text.replace("EDIT = 0", f"EDIT = {number}"))
    begun = time.monotonic()
    bring()
    line = re.compile(rf"^(\d+\.\d+) edit {number}$", re.MULTILINE)
    return float(until(lambda: line.search(printed()), f"the line of edit {number}", watched)[1]) - begun
