"""The page of benchmarks, from the outcomes of a run. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from .notes import Note
from .outcomes import LEFT_OUT, Outcome, Run
from .quiet import LONGEST, QUIET
from .table import COLUMNS, INTERVAL_PAIRS, Row, markdown, number

_ONE_RUN = timedelta(hours=6)
"""Rows that are so much older than the newest are not of the same run."""


@dataclass(frozen=True)
class Headline:
    """One of the numbers at the top of the page: the first row of a name."""

    question: str
    name: str
    peer: str


HEADLINES = (
    Headline("From `pulumi up` to the first training step", "first-step", "a bare Pulumi program and a start by hand"),
    Headline("Training speed while `up` waits", "steps", "the same program, started by hand"),
    Headline(
        "From an edited program to its first line, on Docker", "docker-edit", "`docker build`, `docker stack deploy`"
    ),
    Headline("`pulumi up` that changes nothing", "noop", "a bare Pulumi program with as many resources"),
)

_TOP = """\
# Benchmarks

For contributors. `make bench` measures each row and writes this page.
{when}

## Four numbers

{headlines}

## All rows
{table}
{notes}
[`bench/notes.toml`](../bench/notes.toml) describes how each row is measured, and with which command of the peer. A row
with a peer is measured in pairs, by turns. The median of the ratios, ours / peer, is judged. From {pairs} pairs on the page
has the 95 % interval of the median, and a target is missed if the interval does not reach it. If only the median does
not, the row is undecided: the pairs scatter too much. A row without a peer has a limit for the worst measurement.

Before each row `make bench` waits for up to {longest:.0f} s until other processes use at most {quiet:g} cores. If they use more,
the page names the row. A row that cannot be set up is left out, with the reason. [Contributing](../CONTRIBUTING.md#benchmarks)
has the commands.
"""


def page(run: Run | None, names: Sequence[str], notes: Mapping[str, Note]) -> str:
    """The whole page; `names` are those that `make bench` has."""
    outcomes = [run.outcomes[name] for name in names if name in run.outcomes] if run else []
    rows = [row for outcome in outcomes for row in outcome.rows]
    cells = [(f"`{outcome.name}`", *row.cells()) for outcome in outcomes for row in outcome.rows]
    top = _TOP.format(
        when=_when(run, outcomes),
        headlines="\n".join(_headlines(outcomes)),
        table="\n".join(["", *markdown([("row", *COLUMNS), *cells])]) if rows else "\nNo row has been measured yet.",
        notes="".join(f"\n- {line}" for line in _remarks(names, outcomes)) + "\n" if names else "",
        pairs=INTERVAL_PAIRS,
        longest=LONGEST,
        quiet=QUIET,
    )
    missed = _missed(outcomes, notes)
    return "\n".join(part for part in (top, missed) if part)


def _when(run: Run | None, outcomes: Sequence[Outcome]) -> str:
    if run is None or not outcomes:
        return "No row has been measured yet."
    first, last = min(outcome.at for outcome in outcomes), max(outcome.at for outcome in outcomes)
    end = last.removeprefix(first.partition(" ")[0]).strip()
    return f"The rows are of {first} to {end}, UTC.\nMachine: {run.machine}. Software: {run.software}."


def _headlines(outcomes: Sequence[Outcome]) -> list[str]:
    rows = {outcome.name: outcome.rows[0] for outcome in outcomes if outcome.rows}
    cells = [("", "tfdeploy", "without tfdeploy", "ratio")]
    for line in HEADLINES:
        row = rows.get(line.name)
        values = (row.ours, f"{row.peer}: {line.peer}", number(median(row.values))) if row else ("not measured", "", "")
        cells.append((line.question, *values))
    return markdown(cells)


def _remarks(names: Sequence[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What a reader has to know about single rows."""
    measured = {outcome.name: outcome for outcome in outcomes}
    newest = max((datetime.fromisoformat(outcome.at) for outcome in outcomes), default=None)
    for name in names:
        outcome = measured.get(name)
        if outcome is None:
            continue
        if outcome.problem == LEFT_OUT:
            yield f"`{name}` {LEFT_OUT}: {outcome.reason}"
        elif outcome.problem:
            yield f"**`{name}` failed**: {outcome.reason}"
        elif outcome.is_disturbed:
            yield f"`{name}` was measured beside other work, which used {outcome.beside:.2f} cores."
        if newest is not None and newest - datetime.fromisoformat(outcome.at) > _ONE_RUN:
            yield f"`{name}` is of {outcome.at}: other rows were measured again since."
    if absent := [f"`{name}`" for name in names if name not in measured]:
        yield f"Not measured: {', '.join(absent)}."


def _missed(outcomes: Sequence[Outcome], notes: Mapping[str, Note]) -> str:
    """Each target that is missed or undecided, with its reason."""
    entries = [
        f"- {row.measure}: {_judged(row)}, target {row.target_text}. {notes[outcome.name].reason_of(row) or _no_reason(row)}\n"
        for outcome in outcomes
        for row in outcome.rows
        if not row.met or row.is_undecided
    ]
    return "## Missed and undecided targets\n\n" + "".join(entries) if entries else ""


def _no_reason(row: Row) -> str:
    return "Undecided." if row.is_undecided else "**No reason is given.**"


def _judged(row: Row) -> str:
    if row.interval:
        return f"median {number(median(row.values))}, interval {' to '.join(map(number, row.interval))}"
    return f"{'median' if row.pairs else 'worst'} {number(row.judged)}{row.unit}"
