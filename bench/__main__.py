"""`python -m bench [--update] [NAME…]`: run the benchmarks, print the table, end with 1 if a row failed or missed without a reason.

A run of all rows writes bench/benchmarks.md; `--update` replaces single rows in it. `--write` measures nothing, and writes the page
from the stored results.
"""

import argparse
import datetime
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from . import ending, needs, quiet, results
from .processes import BenchError, LeftOut
from .results import Result

ROWS: Mapping[str, tuple[str, Callable[[ExitStack], None]]] = {
    "noop": ("noop", needs.nothing),
    "preview": ("preview", needs.nothing),
    "import": ("imports", needs.nothing),
    "steps": ("steps", needs.nothing),
    "uploads": ("uploads", needs.nothing),
    "first-step": ("first_step", needs.nothing),
    "command": ("command", needs.docker),
    "ends": ("ends", needs.nothing),
    "controller": ("controller", needs.nothing),
    "logs": ("long_logs", needs.nothing),
    "flood": ("flood", needs.nothing),
    "docker-steps": ("docker_steps", needs.docker),
    "docker-edit": ("docker_edit", needs.docker),
    "docker-many": ("docker_many", needs.docker),
    "follow": ("follow", needs.ec2_and_kubernetes),
    "tfjob": ("tfjob", needs.tfjob),
    "setup": ("cold_setup", needs.nothing),
}
"""The module of each name, and what makes available what it needs."""

DEADLINES = {"docker-many": 3600.0, "setup": 3600.0, "tfjob": 3600.0}
DEADLINE = 1800.0
"""After so many seconds a row fails; what it has made is removed then."""


def main() -> int:
    """The exit code: 0 when each measured row met its target, or has a reason for missing it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks.")
    parser.add_argument("row", nargs="*", help=f"of {', '.join(ROWS)}; without names all")
    parser.add_argument("--update", action="store_true", help="replace these rows in bench/benchmarks.md")
    parser.add_argument("--write", action="store_true", help="write bench/benchmarks.md from the stored results")
    options = parser.parse_args()
    if unknown := set(options.row) - set(ROWS):
        parser.error(f"no such row: {', '.join(unknown)}")
    measured = [] if options.write else _measure(options.row or list(ROWS))
    if measured:
        print("", results.table([(result.name, *result.row.cells()) for result in measured if result.row]), sep="\n")
        print("", *[f"{result.name} {result.problem}" for result in measured if result.problem], sep="\n")
    stored, texts = _replaced(results.read(), measured), results.reasons()
    if options.update or not options.row:
        results.write(stored)
        results.PAGE.write_text(results.page(stored, texts))
    complaints = results.complaints(stored, texts)
    for complaint in complaints:
        print(f"error: {complaint}")
    return 1 if complaints else 0


def _measure(names: list[str]) -> list[Result]:
    """All results; each name is measured when the machine is quiet, or after a minute."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled, as those of an installed package are
    ending.watch()
    with ExitStack() as stack:
        return [result for name in names for result in _results(name, stack)]


def _results(name: str, stack: ExitStack) -> list[Result]:
    """Measure one name. A failure is printed with the last lines of what failed."""
    print(f"{name}:", flush=True)
    module, provide = ROWS[name]
    begun = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    machine, seconds = results.machine(), DEADLINES.get(name, DEADLINE)
    try:
        provide(stack)
        with ending.deadline(seconds, BenchError(f"it did not end within {seconds:g} s")):
            beside = quiet.wait_for_quiet()
            rows = importlib.import_module(f".{module}", __package__).run()
    except LeftOut as reason:
        return [Result(name, begun, machine, problem=f"is left out: {reason}")]
    except Exception as error:
        traceback.print_exc()
        return [Result(name, begun, machine, problem=f"failed: {(str(error) or repr(error)).splitlines()[0]}")]
    return [Result(name, begun, machine, beside, row=row) for row in rows]


def _replaced(stored: list[Result], measured: list[Result]) -> list[Result]:
    """Those that are stored, with names that were measured again replaced; in the order of `ROWS`."""
    names = {result.name for result in measured}
    kept = [result for result in stored if result.name not in names]
    return sorted([*kept, *measured], key=lambda result: list(ROWS).index(result.name))


if __name__ == "__main__":
    sys.exit(main())
