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
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from . import computer, ending, engine, needs, notes, outcomes, page, quiet, table
from .outcomes import FAILED, LEFT_OUT, Outcome, Run
from .pairs import log
from .processes import BenchError, LeftOut

ROWS: Mapping[str, tuple[str, Callable[[ExitStack], str]]] = {
    "noop": ("noop", needs.nothing),
    "preview": ("preview", needs.nothing),
    "import": ("imports", needs.nothing),
    "steps": ("steps", needs.nothing),
    "uploads": ("uploads", needs.nothing),
    "first-step": ("first_step", needs.nothing),
    "command": ("command", needs.engine_if_possible),
    "ends": ("ends", needs.nothing),
    "scale": ("scale", needs.nothing),
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
"""The module of each row, and what it needs: a function that returns why it is not available."""

DEADLINES = {"docker-many": 3600.0, "setup": 3600.0, "tfjob": 3600.0}
DEADLINE = 1800.0
"""After so many seconds a row fails; what it has made is removed then."""

RESULTS = engine.ROOT / "data" / "results.json"
PAGE = engine.ROOT / "benchmarks.md"


def main() -> int:
    """The exit code: 0 when each measured row met its target, or has a reason for missing it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks; without names all of them.")
    parser.add_argument("row", nargs="*", help=f"one of: {', '.join(ROWS)}")
    parser.add_argument("--update", action="store_true", help="replace these rows in bench/benchmarks.md")
    parser.add_argument("--write", action="store_true", help="write bench/benchmarks.md from the stored results")
    options = parser.parse_args()
    if options.write:
        return _write_page()
    for name in options.row:
        if name not in ROWS:
            parser.error(f"no such row: {name}; there are {', '.join(ROWS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled, as those of an installed package are
    ending.watch()
    with ExitStack() as stack:
        run = _measure(options.row or list(ROWS), stack)
    measured = run.outcomes.values()
    missing = [f"{outcome.name} {outcome.problem}: {outcome.reason}" for outcome in measured if outcome.problem]
    print("", *table.lines([row for outcome in measured for row in outcome.rows]), "", *missing, sep="\n")
    if options.update and options.row:
        run = outcomes.read(RESULTS).updated(run) if RESULTS.exists() else run
    if options.update or not options.row:
        RESULTS.write_text(run.to_text())
        return _write_page()
    return _judge(run)


def _measure(names: Sequence[str], stack: ExitStack) -> Run:
    """All outcomes; each name is measured when the machine is quiet, or after a minute."""
    reasons = {name: ROWS[name][1](stack) for name in names}
    results = {}
    for name in names:
        print(f"{name}:", flush=True)
        outcome = results[name] = _outcome(name, reasons[name])
        if outcome.problem:
            log(f"{name} {outcome.problem}: {outcome.reason}")
    return Run(computer.machine(), computer.software(), results)


def _outcome(name: str, unavailable: str) -> Outcome:
    """Measure one name. A failure is printed with the last lines of what failed."""
    begun = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    try:
        if unavailable:
            raise LeftOut(unavailable)
        seconds = DEADLINES.get(name, DEADLINE)
        with ending.deadline(seconds, BenchError(f"it did not end within {seconds:g} s")):
            beside = quiet.wait_for_quiet()
            rows = importlib.import_module(f".{ROWS[name][0]}", __package__).run()
    except LeftOut as reason:
        return Outcome(name, begun, problem=LEFT_OUT, reason=str(reason))
    except Exception as error:
        log(_message(error))
        return Outcome(name, begun, problem=FAILED, reason=(str(error) or repr(error)).splitlines()[0])
    return Outcome(name, begun, rows, beside=round(beside, 2))


def _write_page() -> int:
    """Write the page from the stored outcomes; the exit code."""
    run = outcomes.read(RESULTS)
    PAGE.write_text(page.page(run, list(ROWS), notes.read()))
    return _judge(run)


def _judge(run: Run) -> int:
    """Print warnings and complaints; the exit code."""
    texts = notes.read()
    for warning in notes.warnings(run, texts):
        print(f"warning: {warning}")
    complaints = list(notes.complaints(run, texts))
    for complaint in complaints:
        print(f"error: {complaint}")
    return 1 if complaints else 0


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
