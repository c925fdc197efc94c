"""Which lines and tasks `tfdeploy logs` takes."""

import re
import struct
from pathlib import Path

import pytest

from tests.unit.printing import write
from tfdeploy.agent.lines import STDERR, STDOUT, Log, entry
from tfdeploy.cli.following import Line
from tfdeploy.cli.logs import Wanted, chosen
from tfdeploy.errors import NotFound

CONTAINERS = {"ps-0": "4711", "worker-0": "abc123", "worker-1": "abd456", "worker-10": ""}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], [*CONTAINERS]),
        (["worker-0"], ["worker-0"]),
        (["worker:1"], ["worker-1"]),
        (["worker"], ["worker-0", "worker-1", "worker-10"]),
        (["worker-1", "ps-0"], ["ps-0", "worker-1"]),
        (["abc"], ["worker-0"]),
        (["4711"], ["ps-0"]),
        (["ps-0", "ps"], ["ps-0"]),
    ],
)
def test_tasks_are_asked_for_by_any_name(names: list[str], found: list[str]) -> None:
    assert chosen("p/s/c", names, CONTAINERS) == found


def test_a_name_that_nobody_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"p/s/c has no task 'chief-0'; it has ps-0, worker-0"):
        chosen("p/s/c", ["chief-0"], CONTAINERS)


LINES = [
    Line(1.0, "ps-0", "stdout", "serves", 1),
    Line(2.0, "worker-0", "stderr", "warning", 1),
    Line(3.0, "worker-0", "stdout", "step 1", 2),
    Line(4.0, "worker-1", "stdout", "step 1", 1),
    Line(5.0, "worker-0", "stdout", "step 2", 2),
]


@pytest.mark.parametrize(
    ("wanted", "at"),
    [
        (Wanted(), [1, 2, 3, 4, 5]),
        (Wanted(since=3.0), [3, 4, 5]),
        (Wanted(pattern=re.compile("st.p")), [3, 4, 5]),
        (Wanted(only_stderr=True), [2]),
        (Wanted(attempts={"worker-0": 1}), [2]),
        (Wanted(tail=1), [1, 4, 5]),
        (Wanted(tail=0), []),
        (Wanted(tail=1, pattern=re.compile("1")), [3, 4]),
    ],
)
def test_lines_are_taken_as_asked(wanted: Wanted, at: list[int]) -> None:
    assert [line.at for line in wanted.last(LINES)] == at


def test_the_index_tells_the_attempts(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.attempts() == []
    write(log, [(STDOUT, b"one\n"), (STDERR, b"two\n")], begin=1.0)
    log.streams["index"].put(log.streams["index"].end, entry(5.0, STDOUT, 3, 4, 0))
    assert log.attempts() == [1, 3]
    log.streams["index"].put(log.streams["index"].end, struct.pack("<d", 1.0))
    assert log.attempts() == [1, 3]
