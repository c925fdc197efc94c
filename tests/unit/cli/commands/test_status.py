"""The progress of a task as one line; and what is shown of a cluster in which nothing runs any more."""

from pathlib import Path

import pytest

from tests.clusters import ID
from tests.unit.cli.commands.test_runs import add, call, entry, state_folder
from tfdeploy.cli.commands.status import progress_line
from tfdeploy.report.progress import Progress

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
