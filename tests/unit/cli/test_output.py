"""Tables in the room that there is; and what a task prints cannot do anything to the terminal that shows it."""

import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.rows import machine_row, task_row
from tfdeploy.agent.record.terminal_text import safe
from tfdeploy.cli.output import has_colours
from tfdeploy.outputs import TaskRow
from tfdeploy.report.tables import ago, screen_text, text_table, wide_text

RED, RESET = "\x1b[31m", "\x1b[0m"
NOW = 1_795_262_400.0
"""2026-11-21 12:00:00Z."""

MACHINE = machine_row(machine="lab", provider="docker")
HERE = machine_row(machine="lab")


def task(**more: Any) -> TaskRow:
    command = "python train.py --steps=2000 --batch_size=100 --learning_rate=0.01"
    return task_row(**{"command": command, "status": "stopped (run finished)", **more})


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("more", [{}, {"container": "4cc6c1021f35", "machine": "mnist-worker-m0"}])
def test_tables_fit_the_terminal(width: int, more: dict[str, str]) -> None:
    found = screen_text([MACHINE], [task(**more)], width, NOW + 7 * 86_400)
    assert max(map(len, found.splitlines())) <= width
    assert "worker-0" in found
    assert "stopped (run finished)" in found
    assert ("COMMAND" in found) is (width > 80 or not more), "it goes first, and only where it must"


def test_a_terminal_shows_tasks_first_and_of_this_computer_neither_the_machine_nor_processes() -> None:
    here, there = (screen_text([machine], [task(container="4711")], 500, NOW) for machine in (HERE, MACHINE))
    assert "Master" not in here
    assert "4711" not in here
    assert there.index("worker-0") < there.index("Master")
    assert "4711" in there
    unreachable = {**HERE, "status": "unreachable"}
    assert "unreachable" in screen_text([unreachable], [task()], 500, NOW), "a machine that is not well is shown"  # type: ignore[list-item]
    wide = wide_text([HERE], [task(container="4711")], {"worker-0": "127.0.0.1:21000"}, NOW)
    assert all(text in wide for text in ("4711", "Master", "worker-0:21000", "127.0.0.1:21000"))


LONG = {"status": "unreachable since 2026-11-21 04:12:07Z", "machine": "mnist-worker-m0", "hostname": "gpu-worker-10"}


@pytest.mark.parametrize("width", [80, 100])
def test_what_identifies_a_row_and_its_status_are_never_cut(width: int) -> None:
    lines = screen_text([MACHINE], [task(**LONG)], width, NOW).splitlines()
    assert max(map(len, lines)) <= width
    assert all(text in lines[1] for text in LONG.values())
    assert "COMMAND" not in lines[0], "the command is the first column to go"


@pytest.mark.parametrize(
    ("state", "code"), [("running", 32), ("failed (exit 3)", 31), ("stopped (run finished)", 2), ("pulling", 33)]
)
def test_states_have_colours(state: str, code: int) -> None:
    rows = [{"hostname": "worker-0", "status": state}]
    assert f"\x1b[{code}m{state}\x1b[0m" in text_table(rows, ("hostname", "status"), 80, colours=True)
    assert "\x1b" not in text_table(rows, ("hostname", "status"), 80, colours=False)


@pytest.mark.parametrize(
    ("terminal", "env", "expected"),
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(
    terminal: bool, env: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert has_colours() is expected


def test_wide_characters_are_counted_by_the_columns_that_they_take() -> None:
    lines = screen_text([{**MACHINE, "machine": "機械"}, MACHINE], [task()], 100, NOW).splitlines()
    assert lines[-2].startswith("機械      Master")
    assert lines[-1].startswith("lab       Master")


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-21 11:59:59Z", "1 second ago"),
        ("2026-11-21 10:30:00Z", "1 hour ago"),
        ("2026-11-19 12:00:00Z", "2 days ago"),
        ("2026-11-21 12:00:09Z", "0 seconds ago"),
        ("", ""),
    ],
)
def test_moments_are_told_as_people_do(moment: str, words: str) -> None:
    assert ago(moment, NOW) == words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext ü ✓", "plain\ttext ü ✓"),
        (f"{RED}red{RESET} and not", f"{RED}red{RESET} and not{RESET}"),
        ("\x1b[2J\x1b[H\x1b[?1049hgone", "gone"),
        ("\x1b]52;c;ZXZpbA==\x1b\\text", "text"),
        ("\x1b]0;no end", ""),
        ("\x1bc\x1b7\x1b(Btext", "text"),
        ("\x9b2Jtext", "text"),
        ("a\x00\x07\x08\x0b\x0c\x7f\nb", "ab"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("\x1b[31", "31"),
    ],
)
def test_colours_pass_and_nothing_else(text: str, shown: str) -> None:
    assert safe(text).removesuffix(RESET) == shown.removesuffix(RESET)


@given(st.text(st.characters(codec="utf-8")) | st.text("\x1b[]PX^_0123456789;mHJ\x07\\\x9b\x90\x9c?hl"))
def test_no_text_has_more_than_colours(text: str) -> None:
    rest = re.sub(r"\x1b\[[0-9;:]*m", "", safe(text))
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", rest)
    assert "\x1b" not in safe(text, colours=False)
