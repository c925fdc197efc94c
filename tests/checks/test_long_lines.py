"""The lines of the pages are short enough to read and to compare."""

import pytest

from tools.wrap import ROOT, pages, wrapped

LONG = "word " * 40


def test_no_page_has_a_line_that_is_too_long() -> None:
    texts = {page.relative_to(ROOT).as_posix(): page.read_text() for page in pages()}
    assert [name for name, text in texts.items() if wrapped(text) != text] == [], "run: python -m tools.wrap"


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
