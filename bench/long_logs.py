"""An observation of tasks that have printed much, against one of tasks that have printed little.

The controller searches each line for metrics once. An observation after that should cost the same whatever there is.
"""

import tempfile
import time
from pathlib import Path

from tests.components.many_launchers import RunningController, running_controller
from tfdeploy.agent.record.output import Spool
from tfdeploy.agent.record.output_lines import STDOUT, Encoder
from tfdeploy.agent.record.record import Record, RecordView, ViewRequest
from tfdeploy.agent.wire.rpc import Client
from tfdeploy.backends import controller_calls

from .pairs import by_turns, log
from .processes import until
from .table import Row, ratio

_TASKS = 4
_LARGE, _SMALL = 50_000_000, 500_000
"""Bytes that each task has printed."""

_PAIRS = 100
_SHOWN = 20
_LINE = "{:08} loss 0.12345678 accuracy 0.87654321 learning rate 0.00100000 examples a second 12345.67 epoch 001\n"
_LINES_AT_ONCE, _ENTRIES_AT_ONCE = 10, 1000
_SECONDS = 600.0
_METRICS = {
    "accuracy": r"accuracy (\S+)",
    **{f"end-{index}": rf"the end of worker-{index}: (\d+)" for index in range(_TASKS)},
}


def run() -> list[Row]:
    """Both controllers at once, observed by turns."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        running_controller(_made(Path(folder) / "large"), _TASKS, metrics=_METRICS) as large,
        running_controller(_made(Path(folder) / "small"), _TASKS, metrics=_METRICS) as small,
        large.client() as ours,
        small.client() as peer,
    ):
        for controller, client, size in ((large, ours, _LARGE), (small, peer, _SMALL)):
            for task in controller.run.tasks:
                _print(controller, task.hostname, size)
            begun = time.perf_counter()
            until(lambda client=client: len(_view(client).metrics) == len(_METRICS), "all metrics", seconds=_SECONDS)  # type: ignore[misc]
            log(f"{_TASKS * size / 1e6:g} MB searched after {time.perf_counter() - begun:.1f} s")
        mine, other = by_turns(_PAIRS, "observation", lambda: _seconds(ours), lambda: _seconds(peer))
    measure = f"an observation of {_TASKS} tasks with {_TASKS * _LARGE / 1e6:g} MB of logs, against one with"
    return [ratio(f"{measure} {_TASKS * _SMALL / 1e6:g} MB", mine, other, 1.1)]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _print(controller: RunningController, hostname: str, size: int) -> None:
    """Store so many bytes as the output of a task; its name is in the last line alone."""
    spool = Spool(Record(controller.folder).log(controller.run.id, hostname).folder, {})
    at, position, number = time.time(), 0, 0
    while position < size:
        chunks = []
        for _ in range(_ENTRIES_AT_ONCE):
            chunks.append("".join(_LINE.format(number + line) for line in range(_LINES_AT_ONCE)))
            number += _LINES_AT_ONCE
        last = position + sum(map(len, chunks)) >= size
        chunks += [f"the end of {hostname}: 1\n"] if last else []
        lines = "".join(chunks).encode()
        spool.write(Encoder(STDOUT, 1).add(lines, at))
        position += len(lines)


def _view(client: Client) -> RecordView:
    return controller_calls.view(client, ViewRequest(_SHOWN))


def _seconds(client: Client) -> float:
    begun = time.perf_counter()
    _view(client)
    return time.perf_counter() - begun
