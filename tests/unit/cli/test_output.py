"""What a task prints cannot do anything to the terminal that shows it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdeploy.agent.record.escapes import safe
from tfdeploy.cli.output import prefix

RED, RESET = "\x1b[31m", "\x1b[0m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext ü ✓", "plain\ttext ü ✓"),
        (f"{RED}red{RESET} and not", f"{RED}red{RESET} and not{RESET}"),
        ("\x1b[38;5;12mblue", f"\x1b[38;5;12mblue{RESET}"),
        ("\x1b[2J\x1b[H\x1b[?1049hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;ZXZpbA==\x1b\\text", "text"),
        ("\x1b]0;no end", ""),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x1bc\x1b7\x1b(Btext", "text"),
        ("\x9b2Jtext", "text"),
        ("a\x00\x07\x08\x0b\x0c\x7f\nb", "ab"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("end\x1b", "end"),
        ("\x1b[31", "31"),
    ],
)
def test_colours_pass_and_nothing_else(text: str, shown: str) -> None:
    assert safe(text).removesuffix(RESET) == shown.removesuffix(RESET)


def test_without_colours_there_are_none() -> None:
    assert safe(f"{RED}red{RESET}", colours=False) == "red"


@given(st.text(st.characters(codec="utf-8")) | st.text("\x1b[]PX^_0123456789;mHJ\x07\\\x9b\x90\x9c?hl"))
def test_no_text_has_more_than_colours(text: str) -> None:
    rest = re.sub(r"\x1b\[[0-9;:]*m", "", safe(text))
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", rest)
    assert "\x1b" not in safe(text, colours=False)


def test_lines_begin_with_job_and_index() -> None:
    assert prefix("worker-0") == "worker-0 | "
