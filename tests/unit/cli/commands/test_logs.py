"""Which lines and tasks `tfdeploy logs` takes."""

import re
from pathlib import Path

import pytest

from tests.unit.printing import write
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import FormerTask, LauncherReport, RunState
from tfdeploy.agent.record import pattern_process
from tfdeploy.agent.record.output import Log
from tfdeploy.agent.record.output_lines import STDERR, STDOUT
from tfdeploy.agent.record.record import Record
from tfdeploy.cli.commands.logs import LineFilter, _containers, _previous_attempts, select_tasks
from tfdeploy.cli.snapshot import LogLine, read_lines
from tfdeploy.errors import NotFound, UsageError

CONTAINERS = {"ps-0": "4711", "worker-0": "abc123", "worker-1": "abd456", "worker-10": ""}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], [*CONTAINERS]),
        (["worker-0"], ["worker-0"]),
        (["worker:1"], ["worker-1"]),
        (["worker"], ["worker-0", "worker-1", "worker-10"]),
        (["abc"], ["worker-0"]),
        (["ps-0", "ps"], ["ps-0"]),
    ],
)
def test_tasks_are_asked_for_by_any_name(names: list[str], found: list[str]) -> None:
    assert select_tasks("p/s/c", names, CONTAINERS) == found


def test_a_name_that_nobody_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"p/s/c has no task 'chief-0'; it has ps-0, worker-0"):
        select_tasks("p/s/c", ["chief-0"], CONTAINERS)


def test_a_task_that_was_removed_can_be_named(tmp_path: Path) -> None:
    """By its last lines, also where an earlier version wrote the record; and where it never printed."""
    record = Record(tmp_path)
    run = RunState(RunSpec("one", [TaskSpec("worker-0", "worker", 0)], {}), 1.0)
    run.tasks["worker-0"].report = LauncherReport(container="abc123")
    run.former = {"worker-1": FormerTask(attempt=2), "worker-9": FormerTask("of an earlier run")}
    record.save(run)
    for attempt, text in ((1, b"first\n"), (2, b"last words\n")):
        write(record.log("one", "worker-1"), [(STDOUT, text)], attempt, 1.0)
    write(record.log("one", "worker-2"), [(STDOUT, b"x")])
    containers = _containers(record, run)
    assert containers == {"worker-0": "abc123", "worker-1": "", "worker-2": ""}
    assert select_tasks("p/s/c", ["worker-1"], containers) == ["worker-1"]
    assert [line.text for line in read_lines(record, "one", ["worker-1"])] == ["first", "last words"]
    assert _previous_attempts(record, "one", ["worker-0", "worker-1"]) == {"worker-1": 1}


LINES = [
    LogLine(1.0, "ps-0", "stdout", "serves", 1),
    LogLine(2.0, "worker-0", "stderr", "warning", 1),
    LogLine(3.0, "worker-0", "stdout", "step 1", 2),
    LogLine(4.0, "worker-1", "stdout", "step 1", 1),
    LogLine(5.0, "worker-0", "stdout", "step 2", 2),
]


@pytest.mark.parametrize(
    ("line_filter", "at"),
    [
        (LineFilter(), [1, 2, 3, 4, 5]),
        (LineFilter(since=3.0), [3, 4, 5]),
        (LineFilter(pattern=re.compile("st.p")), [3, 4, 5]),
        (LineFilter(only_stderr=True), [2]),
        (LineFilter(attempts={"worker-0": 1}), [2]),
        (LineFilter(tail=0), []),
        (LineFilter(tail=1, pattern=re.compile("1")), [3, 4]),
    ],
)
def test_lines_are_taken_as_asked(line_filter: LineFilter, at: list[int]) -> None:
    assert [line.at for line in line_filter.select(LINES)] == at


def test_a_pattern_that_takes_too_long_for_a_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_process, "PATTERN_SECONDS", 0.05)
    line = LogLine(1.0, "ps-0", "stdout", "a" * 40 + "b", 1)
    with pytest.raises(UsageError, match=r"--grep '\(a\+\)\+\$' takes more than 0.05 s for one line"):
        LineFilter(pattern=re.compile("(a+)+$")).matches(line)


def test_the_output_says_which_attempts_have_printed(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.attempts() == []
    write(log, [(STDOUT, b"one\n"), (STDERR, b"two\n")], begin=1.0)
    write(log, [(STDOUT, b"a part of a line")], attempt=3)
    assert log.attempts() == [1, 3]
    write(log, [(STDOUT, b"four\n")], attempt=4)
    assert log.attempts() == [1, 3, 4], "not only the first and the last one"
