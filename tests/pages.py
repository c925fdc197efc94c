"""The code blocks of the project's pages, so that tests run what readers see."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_VOLATILE = {
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ": "TIME",
    r"\d+ cpus?, [\d.]+ [KMGT]iB": "SIZE",
    r"^\d+(?= )": "PROCESS",
    r"\b[0-9a-f]{12}, (?:took \S+)?": "RUN",
    r"\b0\.\d+": "NUMBER",
    r" {2,}": "  ",
}
_COMMENT = re.compile(r"\s{2,}# .*$")


@dataclass(frozen=True)
class Block:
    """A code block of a page, below its heading."""

    heading: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a console block, without prompts and comments."""
        return [command for command, _ in self.steps]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Each command with the output that the page shows below it."""
        steps: list[tuple[str, str]] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                command = " ".join(_COMMENT.sub("", line[2:]).split())
                steps.append((command.removesuffix(" #").strip(), ""))
            elif steps:
                steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
        return steps


def blocks(page: Path, language: str = "") -> list[Block]:
    """The code blocks of a page, all or those in one language."""
    return [block for block in _blocks(page.read_text()) if language in ("", block.language)]


def _blocks(text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        outside = _FENCE.sub("", text[: match.start()])
        headings = _HEADING.findall(outside)
        yield Block(headings[-1] if headings else "", match[1], match[2])


def commands(page: Path) -> list[str]:
    """Every command that a page shows."""
    return [command for block in blocks(page, "console") for command in block.commands]


def words(command: str) -> Sequence[str]:
    """The words of a command up to `--`, without variables before it and without what follows a `|`, `&&` or `;`."""
    parts = shlex.split(re.split(r" (?:\||&&|;) ", command)[0])
    while parts and re.fullmatch(r"\w+=.*", parts[0]):
        parts.pop(0)
    return parts[: parts.index("--")] if "--" in parts else parts


def normal(text: str) -> str:
    """A text without what differs from one machine and time to the next: two outputs of the same command are then the same."""
    machine = re.search(r"^MACHINE .*\n(\S+)", text, re.MULTILINE)
    if machine:
        text = re.sub(rf"(?<!\S){re.escape(machine[1])}(?!\S)", "HOST", text)
    for pattern, name in _VOLATILE.items():
        text = re.sub(pattern, name, text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines())


def pages() -> list[Path]:
    """All pages that users and contributors read."""
    found = [ROOT / "README.md", ROOT / "SECURITY.md"]
    found += [page for folder in ("docs", "design", "images", "programs") for page in (ROOT / folder).rglob("*.md")]
    return sorted(page for page in found if "node_modules" not in page.parts)
