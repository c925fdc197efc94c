"""A record arrives whole or not at all, whatever is sent, and what is there is never lost to one that does not continue it."""

import json
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.agent.imported import SPEC, given, recorded, run_state, sent, store
from tests.unit.cases import stored_run
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import events
from tfdeploy.agent.model.run_state import (
    FAILED,
    MOVED,
    RUNNING,
    STOP_REQUESTED,
    STOPPED,
    SUCCEEDED,
    LauncherReport,
    RunResult,
    RunState,
)
from tfdeploy.agent.model.sync import NOTHING
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.agent.record.record_files import RecordFile, small_file
from tfdeploy.agent.record.replica import pack
from tfdeploy.agent.record.run_folders import RunRefused
from tfdeploy.backends.lost_record import list_record


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(Record(tmp_path / "here"))


def test_a_run_that_has_arrived_continues_in_a_folder_of_the_new_place(tmp_path: Path, controller: Controller) -> None:
    given(controller, recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0))))
    again = Controller(Record(tmp_path / "here"))
    for each in (controller, again):
        assert each.sync(LauncherReport("worker-0", "an-instance")).action == NOTHING, "before it is submitted"
        seen = each.view(ViewRequest()).run_state
        assert seen is not None
        assert (seen.moves, seen.has_arrived) == (1, True), "the next update knows that it has the newest record"
    accepted = again.submit_run(replace(SPEC, train_dir=str(tmp_path / "train")))
    assert (accepted["decided"], accepted["train_dir"]) == (False, str(tmp_path / "train/run"))
    run = stored_run(Record(tmp_path / "here"))
    assert (run.moves, run.has_arrived, run.result) == (1, False, None)
    assert run.spec.restored_run == SPEC.id
    later = again.submit_run(replace(SPEC, train_dir=str(tmp_path / "train")))
    assert later["train_dir"] == accepted["train_dir"]
    run = stored_run(Record(tmp_path / "here"))
    assert (run.moves, run.spec.restored_run) == (1, SPEC.id), "a machine that is added later is filled, too"


@pytest.mark.parametrize("state", ["", STOPPED, SUCCEEDED, FAILED])
def test_a_run_continues_unless_it_has_ended(tmp_path: Path, controller: Controller, state: str) -> None:
    cause = STOP_REQUESTED if state == STOPPED else "task_failed"
    given(controller, recorded(tmp_path / "there", run_state(RunResult(state, cause, 2.0) if state else None)))
    accepted = controller.submit_run(replace(SPEC, train_dir=str(tmp_path / "train")))
    assert accepted["decided"] == (state in (SUCCEEDED, FAILED))


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/etc/outside",
        "runs/../../outside",
        "runs/./x/y",
        "runs/.hidden/y",
        "lock",
        "code/0123.zip",
        "runs/x/" + "y" * 300,
    ],
    ids=lambda name: name[:30],
)
def test_names_that_a_record_does_not_have_are_not_stored(tmp_path: Path, name: str) -> None:
    controller = Controller(Record(tmp_path / "a/b/here"))
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    listed = list_record(there.folder)
    strange = [RecordFile(name, 1, "hash"), small_file(name, "x"), *listed.files]
    wanted = controller.record_import.begin(listed._replace(files=strange))
    assert wanted is not None
    assert name not in {part.name for part in wanted}
    message = pack([part._replace(name=name) for part in wanted], [b"x" for _ in wanted])
    assert controller.record_import.put(message) == wanted, "what is not wanted is not stored"
    files = {path.relative_to(tmp_path / "a").as_posix() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert files <= {"b/here/format", "b/here/record_id"}


@pytest.mark.parametrize(
    ("here", "moves", "is_same_record", "refusal"),
    [
        (run_state(RunResult(STOPPED, MOVED, 2.0)), 1, True, ""),
        (run_state(RunResult(SUCCEEDED, "", 2.0)), 1, True, ""),
        (run_state(), 1, True, "has runs already"),
        (run_state(RunResult(STOPPED, MOVED, 2.0), moves=1), 1, True, "has runs already"),
        (run_state(RunResult(STOPPED, MOVED, 2.0)), 1, False, "is another one"),
    ],
    ids=["it has moved on", "finished", "it runs here", "it is the newest", "another cluster"],
)
def test_only_the_record_of_a_run_that_has_moved_away_is_replaced(
    tmp_path: Path, here: RunState, moves: int, is_same_record: bool, refusal: str
) -> None:
    mine = recorded(tmp_path / "here", here)
    theirs = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 3.0), moves=moves))
    theirs.set_record_id(mine.record_id())
    mine.save_other(run_state(spec=replace(SPEC, id="only-here")))
    if not is_same_record:
        theirs.set_record_id("another")
    controller = Controller(Record(tmp_path / "here"))
    with nullcontext() if not refusal else pytest.raises(RunRefused, match=refusal):
        caller = given(controller, theirs)
    if refusal:
        assert [event.kind for event in Record(tmp_path / "here").events(SPEC.id)] == [events.RUN_SUBMITTED]
        return
    assert sum(size for path, size in caller.calls if path == "/import/ranges") < 1000, "the rest is here already"
    assert Record(tmp_path / "here").runs() == [SPEC.id, "only-here"]
    controller.submit_run(replace(SPEC, train_dir=str(tmp_path / "train")))
    assert stored_run(Record(tmp_path / "here")).moves == moves + 1


@pytest.mark.parametrize("returns", [True, False])
def test_a_failed_run_continues_only_where_it_was_before(tmp_path: Path, controller: Controller, returns: bool) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(FAILED, "task_failed", 3.0), moves=1))
    given(controller, there, returns=returns)
    assert controller.submit_run(replace(SPEC, train_dir=str(tmp_path / "train")))["decided"] is not returns


def test_files_of_any_name_travel_with_the_artifacts(tmp_path: Path, controller: Controller) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    names = ["metrics.json", ".x.draft", "/".join(["d" * 200] * 4 + ["e" * 200])]
    store(there, SPEC.id, dict.fromkeys(names, b"x"))
    (there.run_folder(SPEC.id) / "artifacts.draft").mkdir()
    (there.run_folder(SPEC.id) / "artifacts.draft/0").write_text("x")
    given(controller, there)
    here = Record(tmp_path / "here")
    assert all((here.artifacts_folder(SPEC.id) / name).read_text() == "x" for name in names)
    assert not (here.run_folder(SPEC.id) / "artifacts.draft").exists()


@pytest.mark.parametrize(
    ("run_id", "member", "value"),
    [
        ("other", "spec", {"id": "../../outside", "tasks": [], "jobs": {}}),
        ("other", "spec", {"id": "other", "tasks": ["../../x-0"], "jobs": {}}),
        ("other", "tasks", {"../x": {"hostname": "worker-0", "job": "worker", "index": 0}}),
        ("other", "tasks", {"worker-0": {"hostname": "../x", "job": "worker", "index": 0}}),
        ("other", "former", {"/x": {"attempt": 1}}),
        (SPEC.id, "former", {"../x": {"instance": "an-instance"}}),
    ],
)
def test_a_state_that_names_folders_outside_is_refused(tmp_path: Path, run_id: str, member: str, value: object) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    there.save_other(run_state(RunResult(STOPPED, MOVED, 2.0), spec=replace(SPEC, id="other")))
    for name in ("run_state.json", "run_state.copy"):
        path = there.run_folder(run_id) / name
        path.write_text(json.dumps({**json.loads(path.read_text()), member: value}))
    controller = Controller(Record(tmp_path / "a/b/here"))
    before = set(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=f"the (state of the )?run '{run_id}'"):
        sent(controller, there)
    new = {path.relative_to(tmp_path).as_posix() for path in set(tmp_path.rglob("*")) - before}
    assert new <= {"a/b/here/format", "a/b/here/record_id"}
    assert Record(tmp_path / "a/b/here").current() is None


@pytest.mark.parametrize(("base", "expected"), [("train", "{tmp}/train/run"), ("efs", "{tmp}/efs/run")])
def test_a_run_that_was_stopped_to_be_moved_continues_with_the_controller_that_gets_its_record(
    tmp_path: Path, controller: Controller, base: str, expected: str
) -> None:
    there = recorded(tmp_path / "there", run_state(RunResult(STOPPED, MOVED, 2.0)))
    run = stored_run(there)
    run.spec = replace(run.spec, train_dir=str(tmp_path / "train/run"))
    there.save(run)
    given(controller, there, is_moved=False)
    accepted = controller.submit_run(replace(SPEC, train_dir=str(tmp_path / base)))
    assert (accepted["decided"], accepted["train_dir"]) == (False, expected.format(tmp=tmp_path))
    assert controller.submit_run(replace(SPEC, train_dir=str(tmp_path / base)))["train_dir"] == accepted["train_dir"]
    now = stored_run(Record(tmp_path / "here"))
    assert (now.result, now.moves) == (None, 0)


def test_the_record_of_a_lost_disk_continues_as_after_a_restart(tmp_path: Path) -> None:
    there = recorded(tmp_path / "there", run_state())
    run = stored_run(there)
    run.spec = replace(run.spec, train_dir=str(tmp_path / "train/run"))
    run.tasks["worker-0"].attempt, run.tasks["worker-0"].state = 3, RUNNING
    there.save(run)
    controller = Controller(Record(tmp_path / "here"), 0o1777)
    controller.finish_import(replace(sent(controller, there, is_moved=False), copied_at=time.time() - 300))
    now = controller.view(ViewRequest()).run_state
    assert now is not None, "launchers get their orders at once: they may still run"
    assert (now.result, now.moves, now.has_arrived) == (None, 0, False)
    assert (now.tasks["worker-0"].attempt, now.tasks["worker-0"].state) == (3, RUNNING)
    assert (tmp_path / "train/run").stat().st_mode & 0o7777 == 0o1777, "the folder was lost too"
    here = Record(tmp_path / "here")
    assert [event.kind for event in here.events(SPEC.id)] == [events.RUN_SUBMITTED, events.RECORD_RESTORED]
    assert here.events(SPEC.id)[-1].delay == pytest.approx(300, abs=60)
    with pytest.raises(RunRefused, match="has runs already"):
        given(controller, there, is_moved=False)
    assert len(here.events(SPEC.id)) == 2


@pytest.mark.parametrize("path", ["runs/a.b/logs/worker-0/0.log", "runs/a b/run_state.json", "runs/-x/y"])
def test_what_an_import_refuses_does_not_travel(tmp_path: Path, path: str) -> None:
    record = recorded(tmp_path / "from", run_state(RunResult(STOPPED, MOVED, 2.0), moves=1))
    (record.folder / path).parent.mkdir(parents=True)
    (record.folder / path).write_text("x")
    target = Controller(Record(tmp_path / "to"))
    given(target, record)
    assert Record(tmp_path / "to").runs() == [SPEC.id]
