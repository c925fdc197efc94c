"""`python -m bench [ROW…]`: run the benchmarks, print the table, end with 1 when a target was missed or a row failed.

A run of all rows writes the table to docs/benchmarks.md too; a run of some does not.
"""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from . import ending, engine, forecast, needs, table
from .pairs import log
from .processes import BenchError, LeftOut

ROWS: Mapping[str, tuple[str, Callable[[ExitStack], str]]] = {
    "noop": ("noop", needs.nothing),
    "preview": ("preview", needs.nothing),
    "import": ("imports", needs.nothing),
    "steps": ("steps", needs.nothing),
    "first-step": ("first_step", needs.nothing),
    "command": ("command", needs.engine_if_possible),
    "ends": ("ends", needs.nothing),
    "scale": ("scale", needs.nothing),
    "flood": ("flood", needs.nothing),
    "docker-steps": ("docker_steps", needs.docker),
    "docker-edit": ("docker_edit", needs.docker),
    "docker-many": ("docker_many", needs.docker),
    "forecast": ("forecast", needs.nothing),
    "ec2-machines": ("ec2_machines", needs.ec2),
}
"""The module of each row, and what it needs: a function that returns why it is not available."""

PAGE = engine.ROOT.parent / "docs" / "benchmarks.md"

_BUSY = 0.5


def main() -> int:
    """The exit code: 0 when all that was measured met its target."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks; without names all of them.")
    parser.add_argument("row", nargs="*", help=f"one of: {', '.join(ROWS)}")
    names = parser.parse_args().row
    for name in names:
        if name not in ROWS:
            parser.error(f"no such row: {name}; there are {', '.join(ROWS)}")
    ending.watch()
    with ExitStack() as stack:
        rows, missing, failed = _measure(names or list(ROWS), stack)
    print("", *table.lines(rows), "", *missing, sep="\n")
    if not names:
        table.write(rows, missing, [forecast.section()] if "forecast" in ROWS else [], PAGE)
    return 0 if not failed and all(row.met for row in rows) else 1


def _measure(names: Sequence[str], stack: ExitStack) -> tuple[list[table.Row], list[str], bool]:
    """The rows that were measured, a line for each that was not, and whether one failed."""
    reasons = {name: ROWS[name][1](stack) for name in names}
    load = os.getloadavg()[0]
    if load > _BUSY:
        print(f"This machine is busy (load {load:.1f}): what is measured now will scatter.", flush=True)
    rows: list[table.Row] = []
    missing: list[str] = []
    failed = False
    for name in names:
        print(f"{name}:", flush=True)
        try:
            if reasons[name]:
                raise LeftOut(reasons[name])
            rows += importlib.import_module(f".{ROWS[name][0]}", __package__).run()
        except LeftOut as reason:
            missing.append(f"{name} is left out: {reason}")
            log(missing[-1])
        except Exception as error:
            failed = True
            missing.append(f"{name} failed.")
            log(_message(error))
    return rows, missing, failed


def _message(error: BaseException | None) -> str:
    """The message of an error, and of the one before it: if the removal fails too, both."""
    printed = []
    while error is not None:
        expected = isinstance(error, BenchError)
        printed.append(f"failed: {error}" if expected else "".join(traceback.format_exception(error, chain=False)))
        error = None if error.__suppress_context__ else error.__context__
    return "\n".join(reversed(printed))


if __name__ == "__main__":
    sys.exit(main())
