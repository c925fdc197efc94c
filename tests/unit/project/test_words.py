"""The words that the project does not use are in no string, docstring, comment, name or page."""

import os
import re
from pathlib import Path

import pytest

from tests.unit.project.words import HISTORY, PAGES, ROOT, SOURCES, WORDS, misnamed, unclean, uses

NOT_YET = ROOT / "tests" / "unit" / "project" / "unclean.txt"
"""Files that still have such words, one a line: it may only shrink. RENEW_GOLDENS=1 writes it again;
`python -m tests.unit.project.words PATH` lists the words of a file, and what to write instead."""


def test_no_further_file_has_such_words() -> None:
    found = unclean()
    if os.environ.get("RENEW_GOLDENS"):
        NOT_YET.write_text("".join(f"{path}\n" for path in found))
    assert sorted({*found} - {*NOT_YET.read_text().splitlines()}) == []


def test_names_of_test_files_are_clean() -> None:
    words = re.compile(rf"\b(?:{'|'.join(WORDS)})\b")
    names = {path.name for path in (ROOT / "tests").rglob("*.py") if words.search(path.stem.replace("_", " "))}
    assert names == set()


def test_the_folders_exist() -> None:
    assert all((ROOT / name).exists() for name in (*SOURCES, *HISTORY))
    assert all(list(ROOT.glob(pattern)) for pattern in PAGES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('x = "the task stands there"', ["stands"]),
        ('x = f"{x} is started anew"', ["anew"]),
        ("# nobody waits", ["nobody"]),
        ("def looks_on(): pass", ["looks on"]),
        ("class OldKeeper: pass", ["keeper"]),
        ('x = """it has a folder of\nits own"""', ["of its own"]),
        ('x = "a stand-in for the standard; it is no longer there"', []),
        ("standalone = outstanding = stand_in = 1", []),
        ('x = "there is no machine"', []),
        ('x = "is no duration"', ["is no"]),
    ],
)
def test_a_word_is_found(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "a.py").write_text(text)
    assert [use.word for use in uses(tmp_path / "a.py", tmp_path)] == words


def test_a_page_is_read_across_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("First.\nEach has one of\nits own.\n")
    assert [(use.word, use.line) for use in uses(tmp_path / "a.md", tmp_path)] == [("of its own", 2)]


def test_a_variable_that_is_no_noun_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(told):\n    found = [one for one in told]\n    task = found\n")
    assert sorted(use.word for use in misnamed(tmp_path / "a.py", tmp_path)) == ["found", "one", "told"]
