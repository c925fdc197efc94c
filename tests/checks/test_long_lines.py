"""The lines of the pages are short enough to read and to compare."""

from pathlib import Path

import pytest

from tools.wrap import ROOT, WIDTH, pages, wrapped

LONG = "word " * 40


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_is_too_long(page: Path) -> None:
    text = page.read_text()
    after = {*wrapped(text).split("\n")}
    assert [line for line in text.split("\n") if line not in after] == [], "run: python -m tools.wrap"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LONG, 2),
        (f"- {LONG}", 2),
        (f"# {LONG}", 1),
        (f"| {LONG} |", 1),
        (f"```\n{LONG}\n```", 3),
        (f"`{LONG}`", 1),
        (f"{LONG}\n\n- a\n  b\n", 6),
    ],
)
def test_a_long_paragraph_is_wrapped_and_nothing_else(text: str, lines: int) -> None:
    after = wrapped(text)
    assert after.split() == text.split()
    assert len(after.split("\n")) == lines
    assert wrapped(after) == after


def test_the_lines_of_an_item_are_indented() -> None:
    first, second = wrapped(f"  - {LONG}").split("\n")
    assert len(first) <= WIDTH
    assert second.startswith("    word")
