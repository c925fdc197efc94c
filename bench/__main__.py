"""`python -m bench [ROW…]`: run the benchmarks, print the table, end with 1 when a target was missed.

A run of all rows writes the table to docs/benchmarks.md too; a run of some does not.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping

from . import (
    command,
    docker_edit,
    docker_many,
    docker_steps,
    ec2_machines,
    ends,
    engine,
    first_step,
    flood,
    imports,
    noop,
    preview,
    steps,
    swarm,
    table,
)

ROWS: Mapping[str, Callable[[], list[table.Row]]] = {
    "noop": noop.run,
    "preview": preview.run,
    "import": imports.run,
    "steps": steps.run,
    "first-step": first_step.run,
    "command": command.run,
    "ends": ends.run,
    "flood": flood.run,
    "docker-steps": docker_steps.run,
    "docker-edit": docker_edit.run,
    "docker-many": docker_many.run,
    "ec2-machines": ec2_machines.run,
}
DOCKER = ("docker-steps", "docker-edit", "docker-many", "ec2-machines")
PAGE = engine.ROOT.parent / "docs" / "benchmarks.md"

_BUSY = 0.5


def main() -> int:
    """The exit code: 0 when all that was measured met its target."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks; without names all of them.")
    parser.add_argument("row", nargs="*", help=f"one of: {', '.join(ROWS)}")
    asked = parser.parse_args().row
    for name in asked:
        if name not in ROWS:
            parser.error(f"no such row: {name}; there are {', '.join(ROWS)}")
    load = os.getloadavg()[0]
    if load > _BUSY:
        print(f"This machine is busy (load {load:.1f}): what is measured now will scatter.", flush=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end_in_order)
    found: list[table.Row] = []
    names = asked or list(ROWS)
    if set(names) & set(DOCKER) and not swarm.answers():
        print(f"No Docker engine in swarm mode answers: {', '.join(DOCKER)} are left out.", flush=True)
        names = [name for name in names if name not in DOCKER]
    for name in names:
        print(f"{name}:", flush=True)
        found += ROWS[name]()
    print("", *table.lines(found), sep="\n")
    if not asked:
        table.write(found, PAGE)
    return 0 if all(row.met for row in found) else 1


def _end_in_order(number: int, _: object) -> None:
    """Told to end: what was made is taken away first, undisturbed."""
    for again in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
