"""Words and phrases that this project does not use, and where they are still found: `python -m tests.unit.project.words [PATH…]`.

The list is of metaphors and of unusual English that an earlier version was written in; CONTRIBUTING.md has what to write instead. It is
searched for in the strings, docstrings, comments and names of Python files, and in the text of Markdown pages.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]

SOURCES = ("tfdeploy", "programs", "policy", "tools", "bench")
"""Folders of Python code that users or their programs meet."""

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "images/*.md", "programs/**/*.md")
HISTORY = ("docs/decisions", "CHANGELOG.md")
"""Pages that tell of earlier versions, in their words."""

WORDS = {
    r"stand(?! ins?)|stands|stood|standing": "exist, run, be on",
    r"anew": "again, from scratch",
    r"mends?|mended|mending": "fix, repair",
    r"hands|handed": "backend; pass, provide",
    r"nobody|whoever|whose|whosever": "name the subject",
    r"told|tells?|telling|said|says?|saying": "print, report, return, state",
    r"answer|answers|answered|answering": "respond, return; response",
    r"giv(?:e|es|ing) way": "is replaced",
    r"go(?:es)? on|went on|going on": "continue",
    r"looks? on|looking on": "auxiliary",
    r"(?:a|an|the|each|every|one|first|next|last|another|such) looks?": "observation, observed state",
    r"crew": "training tasks",
    r"keeper": "controller",
    r"caretaker": "watchdog",
    r"sweeper": "cleanup",
    r"of (?:its|their|his|my|our|your|one's) own": "its own …",
    r"of (?:ours|yours|theirs|somebody's)": "our …, your …",
    r"what (?:would do|mends|would mend)": "how to fix",
    r"(?<!there )(?:is|are|was) no(?! longer| more| less| larger| smaller| other)": "is not a valid …, is not a …",
    r"by (?:a )?word|by the word": "explicitly",
    r"verdict": "result",
    r"the house(?:'s)?": "tfdeploy, the architecture",
    r"kept": "stored, retained",
    r"heed(?:s|ed|ing)?|behold|bury|buried": "handle, observe, reap",
    r"came|comes(?! (?:with|from|before|after|first|last))": "start, arrive, report",
    r"goes(?! (?:through|over|to|into))": "stop, be removed",
}
"""Pattern to what is written instead; a name is matched word by word."""

NAMES = frozenset(
    (
        "found",
        "one",
        "told",
        "known",
        "there",
        "asked",
        "given",
        "said",
        "stood",
        "whose",
        "here",
        "standing",
    )
)
"""Names that no variable, parameter or attribute has: they are not nouns."""

_PATTERNS = {re.compile(rf"\b(?:{pattern})\b(?!-)", re.IGNORECASE): instead for pattern, instead in WORDS.items()}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TEXT = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))


class Use(NamedTuple):
    """One use of such a word."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r} (say: {self.instead})"


def uses(path: Path, root: Path = ROOT) -> Iterator[Use]:
    """Each use in one file."""
    name = path.relative_to(root).as_posix()
    text = path.read_text()
    if path.suffix != ".py":
        yield from _in_text(name, 1, text.replace("\n", " "), text)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            words = " ".join(_CAMEL.sub("_", token.string).split("_"))
            yield from _in_text(name, token.start[0], words)
        elif token.type in _TEXT:
            yield from _in_text(name, token.start[0], " ".join(token.string.split()))


def _in_text(path: str, line: int, text: str, page: str = "") -> Iterator[Use]:
    for pattern, instead in _PATTERNS.items():
        for match in pattern.finditer(text):
            yield Use(path, line + page.count("\n", 0, match.start()), match[0].lower(), instead)


def misnamed(path: Path, root: Path = ROOT) -> Iterator[Use]:
    """Each variable, parameter or attribute of a Python file that is not named by a noun."""
    name = path.relative_to(root).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield Use(name, node.lineno, node.id, "a noun")
        elif isinstance(node, ast.arg) and node.arg in NAMES:
            yield Use(name, node.lineno, node.arg, "a noun")


def unclean(root: Path = ROOT) -> list[str]:
    """Each file that has such a use, by its path in the repository."""
    return [
        path.relative_to(root).as_posix()
        for path in files(root=root)
        if any(uses(path, root)) or (path.suffix == ".py" and any(misnamed(path, root)))
    ]


def files(paths: Sequence[Path] = (), root: Path = ROOT) -> list[Path]:
    """The files that are searched: all of them, or those in these folders."""
    every = [path for folder in SOURCES for path in (root / folder).rglob("*.py")]
    every += [page for pattern in PAGES for page in root.glob(pattern)]
    searched = sorted({path for path in every if not path.relative_to(root).as_posix().startswith(HISTORY)})
    within = [path.resolve() for path in paths]
    return [path for path in searched if not within or any(path.is_relative_to(folder) for folder in within)]


def main(paths: Sequence[str]) -> None:
    """Print each use in these files or folders, or in all; then how often each word is used, and where."""
    searched = files([Path(path) for path in paths])
    found = [use for path in searched for use in uses(path)]
    names = [use for path in searched if path.suffix == ".py" for use in misnamed(path)]
    if paths:
        print(*found, *names, sep="\n")
    print("words:", dict(Counter(use.word for use in found).most_common()))
    print("names:", dict(Counter(use.word for use in names).most_common()))
    folders = Counter("/".join(use.path.split("/")[:3]) for use in [*found, *names])
    print("where:", dict(folders.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
