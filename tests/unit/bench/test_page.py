"""The page of benchmarks: what it says about rows that were met, missed, disturbed, left out, or that failed."""

import itertools
from pathlib import Path
from typing import cast

import pytest

from bench import __main__ as bench
from bench import command, computer, notes, outcomes
from bench.engine import Project
from bench.notes import Note, Reason
from bench.outcomes import FAILED, LEFT_OUT, Outcome, Run
from bench.page import HEADLINES, page
from bench.plot import picture
from bench.quiet import QUIET, Usage, other_work, wait_for_quiet
from bench.table import Curve, Row, interval, limit, ratio

DOCS = Path(__file__).parents[3] / "docs"
SLOW = ratio("a slow thing, against a fast one", [4.0, 6.0], [2.0, 2.0], 1.2)
QUICK = limit("a quick thing", [0.1, 0.2], 1, " s")
NOTES = {name: Note(f"How {name} is measured.") for name in ("noop", "steps", "flood", "ends", "logs")}
EXPLAINED = {**NOTES, "noop": Note("So.", [Reason("a slow thing", "It is young.")])}


def run_of(*found: Outcome) -> Run:
    return Run("a machine", "Python 3", {outcome.name: outcome for outcome in found})


RUN = run_of(
    Outcome("noop", "2026-11-24 01:00", [SLOW]),
    Outcome("steps", "2026-11-24 01:10", [QUICK], beside=0.5),
    Outcome("flood", "2026-11-24 01:20", problem=LEFT_OUT, reason="no engine"),
    Outcome("ends", "2026-11-24 01:30", problem=FAILED, reason="the run failed"),
)


def text(run: Run | None = RUN, known: dict[str, Note] = EXPLAINED) -> str:
    return page(run, list(NOTES), known, "pictures/a.svg")


def test_the_page_says_what_became_of_each_name() -> None:
    said = text()
    assert "\nThe rows are of 2026-11-24 01:00 to 01:30, UTC.\nMachine: a machine. Software: Python 3.\n" in said
    assert "- `steps` was measured beside other work, which used 0.50 cores.\n" in said
    assert "- `flood` is left out: no engine\n" in said
    assert "- **`ends` failed**: the run failed\n" in said
    assert "- Not measured: `logs`.\n" in said


def test_a_missed_target_is_there_with_its_reason() -> None:
    assert "- a slow thing, against a fast one: median 2.5, target ≤ 1.2. It is young.\n" in text()
    assert "target ≤ 1.2. **No reason is given.**" in text(known=NOTES)
    assert "## Missed and undecided targets" not in text(run_of(Outcome("steps", "2026-11-24 01:10", [QUICK])))


def test_four_numbers_are_at_the_top() -> None:
    assert len(HEADLINES) == 4
    assert {line.name for line in HEADLINES} <= {*bench.ROWS}
    top = text().partition("## All rows")[0]
    cells = [[cell.strip() for cell in line.split("|")] for line in top.splitlines() if line.startswith("| ")]
    assert [cell[2:5] for cell in cells if "changes nothing" in cell[1]] == [
        ["5 s", "2 s: a bare Pulumi program with as many resources", "2.5"]
    ]
    assert sum("not measured" in cell for cell in cells) == 2


def test_a_row_that_is_older_than_the_others_is_named() -> None:
    newer = Outcome("steps", "2026-11-25 01:10", [QUICK])
    assert "- `noop` is of 2026-11-24 01:00: " in text(run_of(RUN.outcomes["noop"], newer))
    assert " is of " not in text()


def test_without_a_run_the_page_says_so() -> None:
    assert "No row has been measured yet." in text(None)


def test_a_run_survives_its_file(tmp_path: Path) -> None:
    curve = Curve("time", "ms", "plan", [(10.0, 1.0), (100.0, 2.0)])
    row = Row("m", "1 ms", "2 ms", [1.0], 1.0, None, curve=curve)
    run = run_of(*RUN.outcomes.values(), Outcome("logs", "2026-11-24 01:40", [row]))
    (tmp_path / "run.json").write_text(run.to_text())
    read = outcomes.read(tmp_path / "run.json")
    assert read.to_text() == run.to_text()
    assert text(read) == text(run)
    assert "![Cost by number of tasks](pictures/a.svg)\n" in text(read)


def test_single_rows_are_replaced_on_the_same_machine_alone() -> None:
    newer = Outcome("noop", "2026-11-25 01:00", [QUICK])
    assert RUN.updated(run_of(newer)).outcomes["noop"] == newer
    with pytest.raises(ValueError, match="measured on a machine, not on another: run all rows"):
        RUN.updated(Run("another", "", {}))


def test_a_miss_without_a_reason_a_failure_and_a_reason_without_a_row_are_errors() -> None:
    assert list(notes.complaints(RUN, EXPLAINED)) == ["ends failed"]
    assert list(notes.complaints(RUN, NOTES)) == [
        "noop: 'a slow thing, against a fast one' misses its target, and bench/notes.toml has no reason",
        "ends failed",
    ]
    elsewhere = {**EXPLAINED, "steps": Note("", [Reason("a renamed row", "It was slow.")])}
    assert "steps: the reason of 'a renamed row' belongs to 0 rows instead of 1" in notes.complaints(RUN, elsewhere)


def test_a_reason_that_is_no_longer_needed_is_a_warning() -> None:
    known = {**EXPLAINED, "steps": Note("", [Reason("a quick thing", "It was slow.")])}
    assert list(notes.complaints(RUN, known)) == ["ends failed"]
    assert list(notes.warnings(RUN, known)) == [
        "steps: 'a quick thing' meets its target: remove its reason from bench/notes.toml"
    ]


@pytest.mark.parametrize("engine", ["unix:///engine.sock", ""])
def test_the_reasons_of_a_row_with_two_peers_fit_both(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine)
    monkeypatch.setattr(command, "_seconds", lambda _, words, __: 1.0 if words[0] == "tfdeploy" else 0.1)
    made = cast(Project, None)
    reasons = [reason.measure for reason in notes.read()["command"].missed]
    calls = [call for call in command._CALLS if any(measure.startswith(call.title) for measure in reasons)]
    run = run_of(Outcome("command", "2026-11-24 01:00", [row for call in calls for row in command._rows(made, call)]))
    assert [*notes.complaints(run, notes.read()), *notes.warnings(run, notes.read())] == []


def test_each_name_has_a_note() -> None:
    known = notes.read()
    assert list(known) == list(bench.ROWS)
    assert all(note.how for note in known.values())


def test_the_page_and_its_picture_are_those_of_the_stored_run() -> None:
    run = outcomes.read(bench.RESULTS)
    again = "write it again: python -m bench --write"
    written = page(run, list(bench.ROWS), notes.read(), bench.PICTURE)
    assert written == (DOCS / bench.PAGE).read_text(), again
    rows = [row for outcome in run.outcomes.values() for row in outcome.rows]
    assert picture(rows) == (DOCS / bench.PICTURE).read_text(), again


def test_the_stored_run_has_all_rows_and_each_miss_has_a_reason() -> None:
    run = outcomes.read(bench.RESULTS)
    assert {*run.outcomes} == {*bench.ROWS}
    assert [outcome.name for outcome in run.outcomes.values() if outcome.problem or not outcome.rows] == []
    assert [*notes.complaints(run, notes.read()), *notes.warnings(run, notes.read())] == []


def test_thirty_pairs_are_judged_by_the_interval_of_their_median() -> None:
    speeds = [0.9] * 10 + [0.95] * 10 + [1.0] * 10
    many = ratio("steps", speeds, [1.0] * 30, 0.98, at_least=True)
    assert many.interval == interval(sorted(speeds)) == (0.9, 1.0)
    assert many.met
    assert many.cells()[-2].endswith("30 pairs, 95 %: 0.9 to 1")
    few = ratio("steps", speeds[:29], [1.0] * 29, 0.98, at_least=True)
    assert not few.met
    assert few.interval is None
    assert not ratio("seconds", speeds, [1.0] * 30, 0.85).met


def test_a_target_that_only_the_interval_reaches_is_undecided() -> None:
    speeds = [0.9] * 10 + [0.95] * 10 + [1.0] * 10
    undecided, met = (ratio(f"steps {target}", speeds, [1.0] * 30, target, at_least=True) for target in (0.98, 0.95))
    assert (undecided.cells()[-1], met.cells()[-1]) == ("≥ 0.98, undecided", "≥ 0.95, met")
    run = run_of(Outcome("steps", "2026-11-24 01:10", [undecided, met]))
    assert "\n- steps 0.98: median 0.95, interval 0.9 to 1, target ≥ 0.98. Undecided.\n" in text(run)
    assert list(notes.complaints(run, EXPLAINED)) == []
    known = {**EXPLAINED, "steps": Note("", [Reason("steps 0.98", "It scatters."), Reason("steps 0.95", "No.")])}
    assert "target ≥ 0.98. It scatters.\n" in text(run, known)
    assert list(notes.warnings(run, known)) == [
        "steps: 'steps 0.95' meets its target: remove its reason from bench/notes.toml"
    ]


def test_the_interval_of_a_median_is_that_of_the_binomial_distribution() -> None:
    """The tenth and the twenty-first of thirty: tables of the sign test."""
    assert interval([float(value) for value in range(1, 31)]) == (10.0, 21.0)


def test_other_work_is_what_others_use_a_second() -> None:
    moments = iter([Usage(10.0, 100.0), Usage(12.0, 101.0)])
    slept: list[float] = []
    assert other_work(lambda: next(moments), slept.append) == 0.5
    assert slept == [2.0]


@pytest.mark.parametrize(("loads", "found"), [([0.05], 0.05), ([0.9, 0.4, 0.1], 0.1), ([0.9] * 100, 0.9)])
def test_a_row_waits_until_the_machine_is_quiet_or_a_minute_has_passed(loads: list[float], found: float) -> None:
    left, time = iter(loads), itertools.count(0.0, 10.0)
    assert wait_for_quiet(lambda: next(left), lambda: next(time)) == found
    assert next(left, None) is None or found > QUIET


def test_the_processor_is_named_by_its_model_where_the_kernel_knows_it(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A Chip 3000\nprocessor\t: 1\n")
    assert computer.processor(tmp_path / "cpuinfo") == "A Chip 3000"
    assert computer.processor(tmp_path / "none")
