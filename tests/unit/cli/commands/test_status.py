"""The progress of tasks, and what is shown of a cluster in which nothing runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.clusters import ID, cluster_ref
from tests.unit.cli.commands.test_runs import add, call, entry, state_folder
from tests.unit.printing import write
from tests.unit.report.test_update_wait import sight
from tests.unit.simulation import running
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.agent.record.progress import Progress
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.cli.commands.status import progress_line, progress_lines
from tfdeploy.cli.snapshot import Snapshot
from tfdeploy.registry import Entry
from tfdeploy.report.expected_state import ExpectedState, expected_of
from tfdeploy.report.report import report

__all__ = ["state_folder"]

NOTHING_TO_WATCH = "This is the last state: the training has ended, so there is nothing to watch.\n"


def test_a_million_steps_are_written_without_an_exponent() -> None:
    assert " 1000000/2000000 50%" in progress_line(Progress(step=1_000_000.0, goal=2_000_000.0), running=False)


@pytest.mark.parametrize("options", [[], ["--watch"]])
def test_a_destroyed_cluster_is_named_as_that(options: list[str], state_folder: Path) -> None:
    entry(ID, "mnist", state_folder, ended=3_000.0)
    add(state_folder / f"retained/mnist-{ID}/19700101T005000Z/record", 1_000.0, "0.91")
    text, messages = call("--cluster", ID, *options, verb="status")
    last = "The cluster was destroyed at 1970-01-01 00:50:00Z; this is its last record. `pulumi up` creates it again."
    assert text.splitlines().count(last) == 1
    assert messages == (NOTHING_TO_WATCH if options else "")


def test_a_run_that_has_ended_is_not_watched(state_folder: Path) -> None:
    add(Path(entry(ID, "mnist", state_folder).cluster["home"]) / "record", 1_000.0, "0.91")
    text, messages = call("--watch", verb="status")
    assert "destroyed" not in text
    assert messages == NOTHING_TO_WATCH


def test_the_progress_of_each_task_is_that_of_the_view(tmp_path: Path) -> None:
    made = running(workers=2, command=["python", "train.py", "--steps=5000"])
    record = Record(tmp_path)
    record.save(made.job)
    lines = [(STDOUT, f"step {number} loss {1 / number}\n".encode()) for number in range(1, 4_001)]
    write(record.log(record.runs()[0], "worker-0"), lines)
    observed = replace(sight(made), record_folder=str(tmp_path), view=record.view(ViewRequest(), made.job))
    shown = Entry(cluster_ref("local", "/nowhere"), "/folder", ExpectedState(tasks=()))
    seen = Snapshot(shown, report(expected_of(made.job), observed), observed)
    progress = seen.report.progress
    assert {name: item.step for name, item in progress.items()} == {"worker-0": 4000.0, "worker-1": None}
    assert 32 <= len(progress["worker-0"].losses) <= 64
    assert progress["worker-0"].goal == 5000
    assert [line.partition(" ")[0] for line in progress_lines(seen)] == ["worker-0"]
