"""The stored results, one line a row, and the page that is written from them."""

import importlib.metadata
import json
import os
import platform
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from .quiet import QUIET
from .table import INTERVAL_PAIRS, Row

FOLDER = Path(__file__).parent
FILE, PAGE, REASONS = FOLDER / "results.jsonl", FOLDER / "benchmarks.md", FOLDER / "reasons.toml"

_HEAD = ("row", "measure", "ours", "peer", "median (min to max)", "target")
_PAGE = """\
# Benchmarks

For contributors. `make bench` measures each row and writes this page.
The rows are of {when}, UTC. Machine: {machines}.

{table}
{problems}
The module of each row in `bench/` says how it is measured. A row with a peer is measured in pairs, by turns. The median
of the ratios, ours / peer, is judged. From {pairs} pairs on the page has the 95 % interval of the median, and a target is
missed if the interval does not reach it. If only the median does not, the row is undecided: the pairs scatter too much.
A row without a peer has a limit for the worst measurement. [Contributing](../CONTRIBUTING.md#benchmarks) has the commands.
"""


@dataclass(frozen=True)
class Result:
    """One row, or why a name of `python -m bench` has none."""

    name: str
    at: str
    """When it was measured, as `2026-11-24 02:10`."""
    machine: str
    beside: float = 0.0
    """How many cores other processes used before it was measured."""
    problem: str = ""
    row: Row | None = None


def read() -> list[Result]:
    """Those that are stored."""
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    return [Result(**{**data, "row": data["row"] and Row(**data["row"])}) for data in map(json.loads, lines)]


def write(results: Iterable[Result]) -> None:
    """Store these."""
    FILE.write_text("".join(f"{json.dumps(asdict(result), ensure_ascii=False)}\n" for result in results))


def reasons() -> dict[str, str]:
    """Why a target is missed, by a part of the row's measure."""
    return tomllib.loads(REASONS.read_text())


def page(results: Sequence[Result], texts: Mapping[str, str]) -> str:
    """The whole page."""
    times = [result.at for result in results]
    rows = [(result, result.row) for result in results if result.row]
    problems = [f"- `{result.name}` {result.problem}" for result in results if result.problem]
    problems += [
        f"- `{name}` was measured beside other work."
        for name in dict.fromkeys(result.name for result, _ in rows if result.beside > QUIET)
    ]
    text = _PAGE.format(
        when=f"{min(times)} to {max(times)}",
        machines="; ".join(dict.fromkeys(result.machine for result in results)),
        table=table([(f"`{result.name}`", *row.cells()) for result, row in rows]),
        problems="".join(f"{line}\n" for line in problems),
        pairs=INTERVAL_PAIRS,
    )
    parts = [part for part in texts if any(part in row.measure and not row.met for _, row in rows)]
    missed = [f"- **{part}**. {texts[part]}" for part in parts]
    return text + "\n".join(["", "## Why targets are missed", "", *missed, ""] if missed else [])


def table(rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [_HEAD, ["---"] * len(_HEAD), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def complaints(results: Sequence[Result], texts: Mapping[str, str]) -> list[str]:
    """Why `make bench` ends with an error: a row that failed, a missed target without a reason, a reason without a row."""
    rows = [result.row for result in results if result.row]
    missed = [row.measure for row in rows if not row.met and not _reason(row, texts)]
    unused = [part for part in texts if not any(part in row.measure for row in rows)]
    return [
        *[f"{result.name} {result.problem}" for result in results if result.problem.startswith("failed")],
        *[f"{measure!r} misses its target, and bench/reasons.toml has no reason" for measure in missed],
        *[f"bench/reasons.toml: no measure has {part!r}" for part in unused],
    ]


def machine() -> str:
    """Processor, cores, memory, operating system, kernel, and the versions of the software that matters."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    kernel = f"Linux {platform.release().partition('-')[0]}"
    memory = psutil.virtual_memory().total / 2**30
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("pulumi", "tensorflow-cpu")]
    computer = [model[1] if model else platform.machine(), f"{os.cpu_count()} cores", f"{memory:.0f} GiB of memory"]
    return ", ".join([*computer, system, kernel, f"Python {platform.python_version()}", *versions])


def _reason(row: Row, texts: Mapping[str, str]) -> str:
    return next((text for part, text in texts.items() if part in row.measure), "")
