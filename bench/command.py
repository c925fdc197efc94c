"""How long commands take, without options, on a local cluster, against `docker ps`.

What these calls load is a test, by counts of modules (`tests/cli/test_logs_and_events.py`).
"""

import time
from functools import partial

from .engine import CLUSTER, UP, Project, project, workplace
from .pairs import by_turns
from .processes import run as run_command
from .table import Row, limit, ratio

_PAIRS = 10
_TARGETS = {"status": 10.0, "logs": 10.0, "runs": 10.0, "--help": 4.0}
"""A word of `tfdeploy` to how many times as long as `docker ps` it may take."""


def run() -> list[Row]:
    """By turns, on a cluster that trains."""
    config = {"tfdeploy:ps": 1, "tfdeploy:workers": 2, "tfdeploy:command": ["python", "clock.py"], "tfdeploy:wait": "0"}
    with workplace() as place, project(place, CLUSTER, "command", config) as made:
        made.ship("clock.py")
        made.pulumi(*UP)
        return [row for word, target in _TARGETS.items() for row in _rows(made, word, target)]


def _rows(made: Project, word: str, target: float) -> list[Row]:
    ours, peer = (partial(_seconds, made, *words) for words in (("tfdeploy", word), ("docker", "ps")))
    ours(), peer()
    title = f"`tfdeploy {word}` on a local cluster"
    mine, others = by_turns(_PAIRS, title, ours, peer)
    return [
        ratio(f"{title}, against `docker ps`", mine, others, target),
        limit(f"{title} (worst of the calls)", mine, 0.2, " s"),
    ]


def _seconds(made: Project, *words: str) -> float:
    begun = time.perf_counter()
    run_command(*words, folder=made.folder, environment=made.environment)
    return time.perf_counter() - begun
