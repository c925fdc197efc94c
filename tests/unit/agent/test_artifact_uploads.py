"""Which launcher uploads, in which order, and when that is over."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.agent.uploading import NOW, Cluster, spec, upload
from tfdeploy.agent.control import artifact_uploads, reconcile
from tfdeploy.agent.control.clock import Clock
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import sync
from tfdeploy.agent.model.events import ARTIFACTS_STORED
from tfdeploy.agent.model.run_spec import DEFAULT_PATTERNS
from tfdeploy.agent.model.run_state import (
    UPLOAD_GIVEN_UP,
    UPLOAD_LOST,
    UPLOAD_WAITS,
    UPLOADED,
    UPLOADING,
    Ended,
    MachineUpload,
    RunState,
)
from tfdeploy.agent.model.sync import EXITED, Order
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.agent.wire.rpc import CallObsolete


def test_the_task_that_ends_last_on_a_machine_uploads() -> None:
    cluster = Cluster(spec("ps-0", "worker-0", "worker-1"))
    assert cluster.end("worker-1") == Order(sync.END, generation=1)
    assert cluster.end("worker-0").upload is None
    order = cluster.end("ps-0")
    assert order.action == sync.END
    assert order.upload == sync.UploadRequest("run", "/train", list(DEFAULT_PATTERNS))
    assert cluster.report("ps-0").upload == order.upload
    assert cluster.report("worker-0").upload is None
    assert artifact_uploads.are_open(cluster.run)
    artifact_uploads.finish(cluster.run, "ps-0", cluster.now)
    assert cluster.report("ps-0") == Order(sync.END, generation=1)
    assert not artifact_uploads.are_open(cluster.run)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_run_that_failed_or_was_stopped_is_uploaded_too(is_stopped: bool) -> None:
    cluster = Cluster(spec("worker-0"))
    if is_stopped:
        reconcile.stop_run(cluster.run, cluster.now)
        assert cluster.report("worker-0").action == sync.STOP
    end = Ended(143, "SIGTERM", at=cluster.now, cause=sync.STOPPED) if is_stopped else Ended(3, at=cluster.now)
    assert cluster.report("worker-0", phase=EXITED, exit=end).upload


def test_the_machine_of_the_deciding_task_uploads_after_all_others() -> None:
    """Otherwise files of the same names would be those of another machine."""
    cluster = Cluster(spec("worker-0", "worker-1", "ps-0", success="all-workers"), worker_1="b", ps_0="p")
    assert cluster.end("worker-0") == Order(sync.STOP, generation=1), "it waits: another worker trains"
    assert cluster.end("worker-1").upload
    artifact_uploads.finish(cluster.run, "worker-1", cluster.now)
    assert cluster.report("worker-1").action == sync.END
    assert cluster.report("worker-0") == Order(sync.STOP, generation=1), "the parameter server has not ended"
    assert cluster.end("ps-0").upload
    assert cluster.report("worker-0") == Order(sync.STOP, generation=1), "it uploads"
    assert artifact_uploads.attempt(cluster.run, "ps-0") == 1
    artifact_uploads.finish(cluster.run, "ps-0", cluster.now)
    assert artifact_uploads.are_open(cluster.run)
    assert cluster.report("worker-0").upload
    artifact_uploads.finish(cluster.run, "worker-0", cluster.now)
    assert cluster.report("worker-0") == Order(sync.END, generation=1)
    assert not artifact_uploads.are_open(cluster.run)
    assert [artifact_uploads.attempt(cluster.run, name) for name in ("worker-0", "ps-0")] == [1, 0]


def test_while_it_waits_for_machines_that_train_on_it_uploads_checkpoints_and_before_a_shutdown_all() -> None:
    made = spec("worker-0", "worker-1", success="all-workers", checkpoint_upload_interval=60.0)
    cluster = Cluster(made, worker_1="b")
    newest = sync.UploadRequest("run", "/train", list(DEFAULT_PATTERNS), 60.0)
    assert cluster.end("worker-0").upload == newest
    cluster.run.tasks["worker-0"].machine_ends = True
    assert cluster.report("worker-0").upload == replace(newest, interval=0.0)


@pytest.mark.parametrize("end", ["silent", "late", "lost while it runs"])
def test_the_last_machine_waits_for_no_other_for_ever(end: str) -> None:
    cluster = Cluster(spec("worker-0", "worker-1"), worker_1="b")
    cluster.end("worker-0")
    if end != "lost while it runs":
        cluster.end("worker-1")
        assert cluster.run.uploads["b"].state == UPLOADING
    assert cluster.run.uploads["a"].state == UPLOAD_WAITS
    silent, seconds = ([], artifact_uploads.MAX_SECONDS + 1) if end == "late" else (["worker-1"], 31.0)
    for passed in (seconds, 1.0):
        expire(cluster, passed, *silent)
    states = {machine: upload.state for machine, upload in cluster.run.uploads.items()}
    assert states == {"a": UPLOADING, "b": UPLOAD_GIVEN_UP if end == "late" else UPLOAD_LOST}


def test_what_a_checkpoint_of_the_running_program_sends_at_last_does_not_end_the_upload_of_all(tmp_path: Path) -> None:
    record, run = Record(tmp_path), RunState(spec("worker-0"), NOW)
    run.uploads = {"a": MachineUpload("worker-0", time.time())}
    record.save(run)
    controller = Controller(record)
    upload(controller, False)
    assert controller.is_uploading(), "the program has ended meanwhile"
    upload(controller, True)
    assert not controller.is_uploading()


@settings(deadline=None)
@given(st.lists(st.sampled_from(["silent", "back", "late", "done", "controller"]), max_size=12))
def test_an_upload_ends_whatever_happens_to_its_launcher(steps: list[str]) -> None:
    """The end of a run never waits longer than the deadline for one; a launcher that comes back is asked again, until it took too
    long."""
    cluster = Cluster(spec("worker-0"))
    cluster.end("worker-0")
    silent: list[str] = []
    for step in steps:
        before = cluster.run.uploads["a"].state
        if step == "done" and before == UPLOADING:
            artifact_uploads.finish(cluster.run, "worker-0", cluster.now)
        silent = ["worker-0"] if step == "silent" else [] if step == "back" else silent
        lost = expire(cluster, artifact_uploads.MAX_SECONDS + 1 if step == "late" else 31.0, *silent)
        state = cluster.run.uploads["a"].state
        assert bool(lost) == (before == UPLOADING and state in (UPLOAD_LOST, UPLOAD_GIVEN_UP))
        assert state != UPLOADING or not silent
        assert before not in (UPLOADED, UPLOAD_GIVEN_UP) or state == before, "it is over"
        asked = artifact_uploads.is_asked(cluster.run, "worker-0")
        assert asked == (state in (UPLOADING, UPLOAD_LOST)), "and its launcher exits then"
    expire(cluster, 31.0, "worker-0")
    assert not artifact_uploads.are_open(cluster.run)


def test_a_lost_launcher_is_replaced_by_another_one_of_its_machine() -> None:
    cluster = Cluster(spec("worker-0", "worker-1", success="all-workers"))
    reconcile.stop_run(cluster.run, cluster.now)
    exit_ = Ended(143, "SIGTERM", at=cluster.now, cause=sync.STOPPED)
    cluster.report("worker-0", phase=EXITED, exit=exit_)
    assert cluster.report("worker-1", phase=EXITED, exit=exit_).upload
    cluster.run.tasks["worker-0"].exits = False
    assert expire(cluster, 31, "worker-1") == []
    assert cluster.report("worker-0").upload
    assert expire(cluster, 31, "worker-0", "worker-1") == ["worker-0"], "none is there"


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_machine_that_is_lost_while_its_task_runs_is_named_after_the_end_of_the_run(is_stopped: bool) -> None:
    cluster = Cluster(spec("worker-0", "worker-1"), worker_1="b")
    cluster.now += 1800
    reconcile.advance(cluster.run, cluster.now)
    assert cluster.run.uploads == {}, "the run goes on"
    cluster.report("worker-1")
    if is_stopped:
        reconcile.stop_run(cluster.run, cluster.now)
    cluster.end("worker-0")
    artifact_uploads.finish(cluster.run, "worker-0", cluster.now)
    assert expire(cluster, artifact_uploads.SILENT_SECONDS - 2, "worker-1") == []
    reconcile.advance(cluster.run, cluster.now)
    assert list(cluster.run.uploads) == ["a"], "it may still report its end"
    expire(cluster, 2, "worker-1")
    reconcile.advance(cluster.run, cluster.now)
    assert expire(cluster, 1, "worker-1") == ["worker-1"]
    assert cluster.run.uploads["b"].state == UPLOAD_LOST
    reconcile.advance(cluster.run, cluster.now)
    assert expire(cluster, 1, "worker-1") == [], "it is named once"
    cluster.report("worker-1")
    assert list(cluster.run.uploads) == ["a"], "it is there again, and runs"
    assert cluster.end("worker-1").upload


def expire(cluster: Cluster, seconds: float, *silent: str) -> list[str]:
    """Time passes; the tasks whose uploads are lost now."""
    cluster.now += seconds
    for task in cluster.run.tasks.values():
        task.seen = task.seen if task.hostname in silent else cluster.now
    happened = artifact_uploads.expire(cluster.run, cluster.now)
    artifact_uploads.request_uploads(cluster.run, cluster.now)
    return [event.task for event in happened]


def test_an_upload_has_no_less_time_because_no_controller_ran(tmp_path: Path) -> None:
    cluster = Cluster(spec("worker-0"))
    cluster.end("worker-0")
    record, later = Record(tmp_path), cluster.now + 2 * artifact_uploads.MAX_SECONDS
    record.save(cluster.run)
    record.touch(cluster.now)
    controller = Controller(record, clock=Clock(lambda: later, lambda: later))
    controller.tick()
    assert controller.sync(cluster.reports["worker-0"]).upload


def test_a_machine_that_trains_again_uploads_again() -> None:
    cluster = Cluster(spec("worker-0", "worker-1", success="all-workers"), worker_1="b")
    cluster.end("worker-1")
    artifact_uploads.finish(cluster.run, "worker-1", cluster.now)
    more = spec("worker-0", "worker-1", "worker-2", success="all-workers")
    reconcile.update_spec(cluster.run, more, cluster.now)
    reconcile.advance(cluster.run, cluster.now)
    assert cluster.run.uploads == {}


def interrupted(cluster: Cluster, hostname: str, notice: str) -> Order:
    exit_ = Ended(143, at=cluster.now, cause=sync.INTERRUPTED, notice=notice)
    return cluster.report(hostname, phase=EXITED, exit=exit_)


def test_a_machine_that_is_shut_down_uploads_before() -> None:
    cluster = Cluster(spec("worker-0", "worker-1", "worker-2"), worker_2="b")
    assert interrupted(cluster, "worker-0", "lifetime of 60 s is over").upload is None
    order = interrupted(cluster, "worker-1", "lifetime of 60 s is over")
    assert order.action == sync.STOP
    assert order.upload
    assert list(cluster.run.uploads) == ["a"]
    artifact_uploads.finish(cluster.run, "worker-1", cluster.now)
    assert cluster.report("worker-1").upload is None
    cluster.report("worker-0", instance="another", phase=sync.IDLE, exit=None, ready=False)
    assert cluster.run.uploads == {}


def test_a_task_that_is_interrupted_on_a_machine_that_stays_does_not_upload() -> None:
    assert interrupted(Cluster(spec("worker-0")), "worker-0", "").upload is None


def test_a_task_that_never_started_has_nothing() -> None:
    cluster = Cluster(spec("worker-0"))
    cluster.run.tasks["worker-0"].started = 0.0
    reconcile.stop_run(cluster.run, cluster.now)
    assert cluster.run.uploads == {}


@pytest.mark.parametrize("is_current", [True, False])
@pytest.mark.parametrize("state", [UPLOADING, UPLOAD_LOST, UPLOADED])
def test_only_an_upload_that_is_open_is_taken(tmp_path: Path, is_current: bool, state: str) -> None:
    record, run = Record(tmp_path), RunState(spec("worker-0"), NOW)
    run.uploads = {"a": MachineUpload("worker-0", time.time(), state)}
    record.save(run)
    if not is_current:
        record.save(RunState(replace(run.spec, id="later"), NOW))
    (record.run_folder("run") / "artifacts").mkdir()
    controller = Controller(record)
    file = {"name": "k.keras", "size": 1, "version": "1"}
    declared = {"artifacts": [{"kind": "keras", "name": "k.keras", "files": [file]}], "at_end": True}
    if state == UPLOADING or (is_current and state == UPLOAD_LOST):
        ((_, end),) = controller.uploads.begin("run", "worker-0", declared)["drafts"][0].values()
        assert end == 0
        upload(controller, True)
    for call in (controller.uploads.begin, controller.uploads.end):
        with pytest.raises(CallObsolete):
            call("run", "worker-0", {**declared, "names": [], "left_out": []})
    with pytest.raises(CallObsolete):
        controller.uploads.put("run", "worker-0", "0-0-1", 0, b"x")
    with pytest.raises(CallObsolete):
        controller.uploads.store("run", "worker-0", declared["artifacts"][0])  # type: ignore[index]


def test_an_upload_of_an_earlier_run_is_not_open_for_ever(tmp_path: Path) -> None:
    record, run = Record(tmp_path), RunState(spec("worker-0"), NOW)
    run.uploads = {"a": MachineUpload("worker-0", time.time() - artifact_uploads.MAX_SECONDS - 1)}
    record.save(run)
    record.save(RunState(replace(run.spec, id="later"), NOW))
    with pytest.raises(CallObsolete):
        Controller(record).uploads.begin("run", "worker-0", {"artifacts": []})


def test_a_clock_that_is_set_moves_the_begin_of_an_upload() -> None:
    run = RunState(spec("worker-0"), NOW)
    run.uploads = {"a": MachineUpload("worker-0", NOW)}
    reconcile.shift_clock(run, 50.0)
    assert run.uploads == {"a": MachineUpload("worker-0", NOW + 50.0)}


def test_what_has_arrived_stays_until_its_launcher_is_not_asked_any_more(tmp_path: Path) -> None:
    run = RunState(spec("worker-0", "worker-1", success="all-workers"), NOW)
    run.uploads = {"a": MachineUpload("worker-0", time.time()), "b": MachineUpload("worker-1", time.time() + 1)}
    Record(tmp_path).save(run)
    drafts = tmp_path / "runs" / "run" / "artifacts.draft"

    def declared(name: str) -> dict[str, object]:
        files = [{"name": name, "size": 3, "version": "1"}]
        return {"artifacts": [{"kind": "keras", "name": name, "files": files}], "at_end": True}

    uploads = Controller(Record(tmp_path)).uploads
    ((draft, _),) = uploads.begin("run", "worker-0", declared("a.keras"))["drafts"][0].values()
    assert uploads.put("run", "worker-0", draft, 0, b"x") == 1
    uploads = Controller(Record(tmp_path)).uploads
    assert uploads.put("run", "worker-0", draft, 1, b"y") == 2, "of another controller, too"
    assert uploads.begin("run", "worker-1", declared("a.keras")) == {"drafts": [{}]}, "the other machine uploads it"
    uploads.begin("run", "worker-1", declared("b.keras"))
    uploads.end("run", "worker-1", {"names": [], "left_out": [], "at_end": True})
    assert uploads.begin("run", "worker-0", declared("a.keras"))["drafts"] == [{"a.keras": (draft, 2)}], "it continues"
    later = [time.time() + artifact_uploads.MAX_SECONDS + 60]
    steady = Clock(lambda: later[0], lambda: later[0])
    controller = Controller(Record(tmp_path), clock=steady)
    assert drafts.exists()
    controller.tick()
    assert not drafts.exists(), "nobody continues it"
    with pytest.raises(CallObsolete):
        controller.uploads.begin("run", "worker-0", declared("a.keras"))


def test_a_machine_with_an_empty_disk_deletes_nothing(tmp_path: Path) -> None:
    """A spot machine has uploaded before it was shut down; on the one that replaces it, of the same name, the program fails."""
    run = RunState(spec("worker-0"), NOW)
    record = Record(tmp_path)
    files = [{"name": name, "size": 1, "version": "1"} for name in ("model.ckpt-500.index", "checkpoint")]
    for declared in ([{"kind": "checkpoint", "name": "model.ckpt-500", "files": files}], []):
        run.uploads = {"a": MachineUpload("worker-0", time.time())}
        record.save(run)
        controller = Controller(record)
        upload(controller, True, *declared)
        (artifact,) = controller.view(ViewRequest()).artifacts
        assert (artifact.name, artifact.is_complete) == ("model.ckpt-500", True)
    stored = [event for event in record.events("run") if event.kind == ARTIFACTS_STORED]
    assert [event.artifacts for event in stored] == [["model.ckpt-500"]], "the second upload has stored nothing"
