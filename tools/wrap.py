"""Wraps the paragraphs of the pages that have a line of more than 120 characters: `python -m tools.wrap`. Tables and code stay."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH = 120
GENERATED = {"docs/reference.md", "docs/command.md", "docs/json.md", "design/features.md", "bench/benchmarks.md"}
"""Pages that other tools write."""

_UNIT = re.compile(r"(?:!?\[[^\]]*\]\([^)]*\)|`[^`]+`|\*\*[^*]+\*\*|\S)+")
"""What no line break may divide: a word, a link, code, bold text, and what is joined to them."""

_ITEM = re.compile(r"(\s*)([-*]|\d+\.) +")
_FIXED = re.compile(r"\s*(\||#|!\[|<|```|$)")
"""Lines that are not part of a paragraph."""

_BEGINS_BLOCK = re.compile(r"([-*+>#|]|\d+\.)( |$)|```")


def pages() -> list[Path]:
    """The pages that people write."""
    written = ("*.md", "docs/**/*.md", "design/*.md", "images/*.md", "programs/*/*.md")
    found = (page for pattern in written for page in ROOT.glob(pattern))
    return [page for page in found if page.relative_to(ROOT).as_posix() not in GENERATED]


def paragraphs(text: str) -> Iterator[tuple[list[str], bool]]:
    """Groups of lines, and whether they are a paragraph or an item of a list."""
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        fixed = is_code or fence or bool(_FIXED.match(line)) or (not lines and line.startswith("    "))
        if (fixed or _ITEM.match(line)) and lines:
            yield lines, True
            lines = []
        if fixed:
            yield [line], False
        else:
            lines.append(line)
        is_code ^= fence
    if lines:
        yield lines, True


def wrapped(text: str) -> str:
    """The text, with its long paragraphs wrapped."""
    groups = (
        _filled(lines) if movable and any(len(line) > WIDTH for line in lines) else lines
        for lines, movable in paragraphs(text)
    )
    return "\n".join(line for lines in groups for line in lines)


def _filled(lines: list[str]) -> list[str]:
    item = _ITEM.match(lines[0])
    begin = item[0] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    indent = " " * len(begin)
    filled = [begin]
    for unit in _UNIT.findall(" ".join(lines)[len(begin) :]):
        is_begun = filled[-1] not in (begin, indent)
        if len(filled[-1]) + 1 + len(unit) > WIDTH and is_begun and not _BEGINS_BLOCK.match(unit):
            filled.append(indent)
        filled[-1] += f" {unit}" if filled[-1] not in (begin, indent) else unit
    return filled


if __name__ == "__main__":
    for page in pages():
        before = page.read_text()
        if (after := wrapped(before)) != before:
            page.write_text(after)
            sys.stdout.write(f"wrapped {page.relative_to(ROOT)}\n")
