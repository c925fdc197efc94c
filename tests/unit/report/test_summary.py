"""What people ask first of a run, in a terminal of 80 columns."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report.test_report import failed, finished, noon, read, sight, world
from tests.unit.simulation import World
from tfdeploy.agent.record.progress import Progress
from tfdeploy.report.report import Report
from tfdeploy.report.summary import next_steps, summary

PROGRESS = Progress(step=120.0, goal=200.0, loss=0.31, rate=41.0, losses=[0.9, 0.5, 0.31])


def artifact(name: str, kind: str, **more: Any) -> Any:
    return {"name": name, "kind": kind, "size": 1536, "path": f"/home/ada/x/{name}", "problem": "", **more}


def done(**more: Any) -> Report:
    shown = {"run": "6f1c", "took": "1m12s", "progress": {"worker-0": PROGRESS}, **more}
    return replace(read(sight(finished())), **shown)


def test_a_run_that_succeeded_says_how_good_it_is_how_long_it_took_and_where_its_model_is() -> None:
    rows = [artifact("export", "model"), artifact("ckpt-7", "checkpoint")]
    text = summary(done(metrics={"accuracy": 0.957, "steps": 1000.0}, artifacts=rows), "/home/ada", 80)
    assert text.splitlines() == [
        "run       6f1c, took 1m12s",
        "accuracy  0.957",
        "steps     1000",
        "progress  step 120/200, 41.0 steps/s, loss 0.31 █▃▁",
        "stored    export (model, 1.5 KiB), ckpt-7 (checkpoint, 1.5 KiB)",
        "in        ~/x",
        "Run succeeded: worker-0 succeeded.",
    ]


@pytest.mark.parametrize("made", [world(), finished()])
def test_a_record_that_is_not_stored_is_named(made: World) -> None:
    report = read(replace(sight(made), not_stored="The record cannot be stored."))
    assert summary(report).splitlines()[-1] == "The record cannot be stored."


@pytest.mark.parametrize(
    ("metrics", "shown"), [({"accuracy": None}, "accuracy not printed"), ({"accuracy": "97.5%,"}, "accuracy 97.5%,")]
)
def test_a_metric_is_shown_as_it_is(metrics: dict[str, Any], shown: str) -> None:
    assert shown in [" ".join(line.split()) for line in summary(done(metrics=metrics)).splitlines()]


def test_many_artifacts_none_and_one_that_is_missing() -> None:
    rows = [artifact(f"m{number}", "keras") for number in range(5)]
    lost = artifact("big", "", path="", problem="It is too large.")
    assert "m2 (model, 1.5 KiB) and 2 more" in summary(done(artifacts=rows))
    shown = summary(done(artifacts=[lost], train_dir="/home/ada/train/6f1c"), "/home/ada")
    assert "not stored  big: It is too large." in shown
    assert "train_dir   ~/train/6f1c" in shown


@pytest.mark.parametrize(
    ("progress", "last"),
    [
        (PROGRESS, "Run running for 1m12s: step 120/200 (60%), 41.0 steps/s, 2s left, loss 0.31 █▃▁."),
        (Progress(step=7.0), "Run running for 1m12s: step 7."),
        (Progress(), "Run running for 1m12s."),
    ],
)
def test_a_run_that_continues_ends_with_its_step_speed_and_time(progress: Progress, last: str) -> None:
    running = replace(read(sight(world())), took="1m12s", progress={"worker-0": progress})
    assert summary(running).splitlines()[-1] == last
    assert all(len(line) <= 60 for line in summary(running, width=60).splitlines())


def test_a_cause_that_is_explained_elsewhere_is_not_repeated() -> None:
    report = read(sight(failed()))
    assert "Run failed: worker-1 failed (exit 3)." in summary(report)
    assert "failed" not in summary(report, in_update=True)


@pytest.mark.parametrize(
    ("report", "in_status", "commands"),
    [
        (done(), False, "`tfdeploy status`, `tfdeploy logs worker-0`, `tfdeploy report`"),
        (read(sight(world())), True, "`tfdeploy status --watch`, `tfdeploy logs worker-0`, `tfdeploy report`"),
        (read(sight(failed())), True, "`tfdeploy explain`, `tfdeploy logs worker-1`, `tfdeploy report`"),
        (
            read(sight(world(), engine={"worker-0": False})),
            True,
            "`tfdeploy explain`, `tfdeploy logs worker-0`, `tfdeploy report`",
        ),
    ],
)
def test_what_to_type_next_begins_with_explain_where_it_is_wrong(
    report: Report, in_status: bool, commands: str
) -> None:
    line = next_steps(report, in_status=in_status)
    assert line == f"More: {commands}."
    assert len(line) <= 80


def test_after_a_run_no_address_is_listed_at_which_nothing_listens() -> None:
    assert read(sight(finished())).endpoints == {}
    assert [row["address"] for row in read(sight(finished())).tasks] != ["", "", ""], "rows still have it"
    board = noon(tensorboard=True)
    board.come()
    addresses = read(sight(board), tensorboard=True).endpoints
    assert {"ps-0", "worker-0", "worker-1", "tensorboard-0"} == {*addresses}
    board.exit("worker-0")
    board.exit("worker-1")
    assert {*read(sight(board), tensorboard=True).endpoints} == {"tensorboard-0"}
