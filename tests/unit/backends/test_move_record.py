"""Before machines are replaced, the record of their run is on this computer: whole, or no machine is replaced. What may move, and
what the image counts in the name of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.unit.agent.imported import recorded as recorded_run
from tests.unit.agent.imported import run_state
from tests.unit.agent.served import Served
from tests.unit.agent.served import served as served
from tests.unit.cases import plan
from tfdeploy.agent.model.run_spec import DEFAULT_PATTERNS
from tfdeploy.agent.model.run_state import (
    FAILED,
    MOVED,
    STOP_REQUESTED,
    STOPPED,
    SUCCEEDED,
    UPLOAD_LOST,
    UPLOADED,
    LauncherReport,
    MachineUpload,
    RunResult,
    RunState,
)
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.artifact_selection import FileInfo, choose, relative_checkpoint
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, LIMIT, NO_MATCH, LeftOut
from tfdeploy.backends import move_record
from tfdeploy.backends.base import Replacement
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.local import task_runner as local_runner
from tfdeploy.backends.local.task_runner import LocalTaskRunner
from tfdeploy.backends.move_checks import RunMover, StoppedRun, begins_again, missing_checkpoint
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError

CLUSTER = cluster_ref("ec2", "ec2://us-west-2/mnist")
RUN = replace(plan(workers=1).run, train_dir="/tfdeploy/train/run")
STORED = ManifestArtifact(CHECKPOINT, "model.ckpt-5", "m0", 0, [ManifestFile("checkpoint", 2, "1")])
TOO_LARGE = LeftOut("model.ckpt-5", 3 << 30, LIMIT, "m0")
WHOLE, TOO_MUCH, EMPTY = ArtifactList([STORED]), ArtifactList([], [TOO_LARGE]), ArtifactList()
REPLACEMENT = Replacement(("i-0a",))


class Stops:
    """Has stopped the run, whose record is in the user's copy."""

    def __init__(self, is_current: bool) -> None:
        self._is_current = is_current

    def stop_to_move(self, cluster: Any) -> StoppedRun:
        return StoppedRun(RecordCopy(cluster).folder, self._is_current)


def run(state: str = STOPPED, upload: str = UPLOADED, started: float = 1.5, **changes: Any) -> RunState:
    changed = RunState(replace(RUN, **{"artifacts": ["export"], **changes}), 1.0)
    task = changed.tasks["worker-0"]
    task.report, task.started = LauncherReport(machine="laptop"), started
    changed.result = RunResult(state, MOVED, 2.0)
    changed.uploads = {"laptop": MachineUpload("worker-0", 2.0, upload)} if upload else {}
    return changed


def stopped(folder: Path, manifest: ArtifactList, is_whole: bool = True) -> StoppedRun:
    """The record of a run with these artifacts, or with empty files in their place."""
    record = Record(folder)
    save_manifest(record.run_folder(RUN.id), manifest)
    for file in manifest.files:
        path = record.artifacts_folder(RUN.id) / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1" * file.size * is_whole)
    return StoppedRun(folder, is_current=True)


def recorded(
    manifest: ArtifactList = WHOLE,
    is_whole: bool = True,
    state: str = STOPPED,
    cause: str = MOVED,
    is_current: bool = True,
    started: float = 0.0,
) -> RunMover:
    """A mover, and the copy of a record with the state of its run and its checkpoint."""
    stored = run(upload=UPLOADED if started else "", started=started)
    stored.result = RunResult(state, cause, 2.0) if state else None
    copy = RecordCopy(CLUSTER).record
    copy.save(stored)
    stopped(copy.folder, manifest, is_whole)
    return cast(RunMover, Stops(is_current))


def bring_home(mover: RunMover, replacement: Replacement) -> None:
    """What is done with the record of this mover."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_record, "mover", lambda _: mover)
        move_record.bring_home(CLUSTER, replacement)


@pytest.mark.parametrize("keeps", [False, True])
def test_the_next_controller_chooses_another_folder_unless_the_machines_see_this_one(keeps: bool) -> None:
    """The same folder of a volume of the user's may have an older checkpoint."""
    bring_home(recorded(), replace(REPLACEMENT, keeps_train_dir=keeps))
    run = RecordCopy(CLUSTER).record.current()
    assert run is not None
    assert run.has_arrived is not keeps


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"is_current": False, "cause": STOP_REQUESTED}, "the controller does not respond"),
        ({"is_current": False, "is_whole": False}, "only a part could be copied"),
        ({"is_whole": False}, "only a part could be copied"),
        ({"manifest": TOO_MUCH}, "could not be uploaded: model.ckpt-5"),
        ({"state": ""}, "the copy of its record is not complete"),
        ({"state": SUCCEEDED, "is_whole": False}, "only a part could be copied"),
    ],
    ids=["silent", "silent since, and partly", "partly", "too large", "an older copy", "a finished run"],
)
def test_what_is_not_whole_replaces_no_machine(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(BackendError, match=f"no machine is replaced: .*{problem}"):
        bring_home(recorded(**args), REPLACEMENT)


def test_a_run_that_has_stored_nothing_to_continue_from_replaces_no_machine() -> None:
    with pytest.raises(BackendError, match="no machine is replaced: nothing is stored that it could continue from"):
        bring_home(recorded(EMPTY, started=1.5), REPLACEMENT)
    for replacement in (replace(REPLACEMENT, keeps_train_dir=True), replace(REPLACEMENT, continues=False)):
        bring_home(recorded(EMPTY, started=1.5), replacement)
    bring_home(recorded(EMPTY), REPLACEMENT)  # it has not begun


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_copy_of_what_the_run_has_left_here_is_retained_unless_the_newest_record_has_it(
    served: Served, tmp_path: Path, state_folder: Path, is_whole: bool
) -> None:
    own = run_state(RunResult(STOPPED, MOVED, 2.0))
    recorded_run(served.controller.record.folder, own)
    served.controller.record.save_other(run_state(spec=replace(RUN, id="earlier")))
    there = recorded_run(tmp_path / "there", run_state(moves=1))
    there.set_record_id(served.controller.record.record_id())
    source = move_record._Source(CLUSTER, StoppedRun(there.folder, is_whole), run_state(moves=1))
    said = move_record._stop_here(served.client(), cluster_ref("local", "/home"), own, source)
    assert served.controller.record.runs() == sorted([own.spec.id, "earlier"])
    retained = [path.name for path in state_folder.rglob("runs/*")]
    assert (sorted(retained), bool(said)) == ([] if is_whole else sorted([own.spec.id, "earlier"]), not is_whole)
    assert not [*state_folder.glob("tfdeploy/local/*")]


NOT_UPLOADED = "what laptop has in /tfdeploy/train/run could not be uploaded"


@pytest.mark.parametrize(
    ("state", "manifest", "has_files", "problem"),
    [
        (run(), WHOLE, True, ""),
        (run(), EMPTY, True, "nothing is stored that it could continue from: `artifacts` (export) names no"),
        (run(), ArtifactList([], [LeftOut("*.csv", 0, NO_MATCH, "laptop")]), True, "nothing is stored"),
        (run(started=0.0, upload=""), EMPTY, True, ""),
        (run(serve=True), EMPTY, True, ""),
        (run(), ArtifactList([STORED], [replace(TOO_LARGE, name="export")]), True, ""),
        (run(), TOO_MUCH, True, "could not be uploaded: model.ckpt-5"),
        (run(), WHOLE, False, "only a part could be copied"),
        (run(upload=UPLOAD_LOST), WHOLE, True, NOT_UPLOADED),
        (run(SUCCEEDED), TOO_MUCH, True, ""),
        (run(train_dir="s3://bucket/train/run"), TOO_MUCH, True, ""),
        (run(FAILED), TOO_MUCH, True, "could not be uploaded: model.ckpt-5"),
        (run(upload=""), EMPTY, True, NOT_UPLOADED),
        (run(upload="", artifacts=[]), EMPTY, True, "`artifacts` (an empty list) names no"),
        (run(upload="", started=0.0), WHOLE, True, ""),
    ],
)
def test_a_run_moves_with_its_newest_checkpoint_or_not_at_all(
    tmp_path: Path, state: RunState, manifest: ArtifactList, has_files: bool, problem: str
) -> None:
    text = missing_checkpoint(stopped(tmp_path, manifest, has_files), state, RUN.id)
    assert problem in text
    assert bool(problem) == bool(text)


def uploaded(names: list[str], patterns: list[str]) -> ArtifactList:
    """What an upload of these files stores. Those of TensorFlow name the last checkpoint."""
    files = {name: FileInfo(1, number) for number, name in enumerate(names)}
    chosen, left_out = choose(files, patterns, lambda _: relative_checkpoint("ckpt-2"))
    artifacts = []
    for item in chosen:
        listed = [ManifestFile(it.name, it.size, it.version) for it in item.files]
        artifacts.append(ManifestArtifact(item.kind, item.name, "laptop", 0, listed))
    return ArtifactList(artifacts, left_out)


BACKUP = ["backup/latest.weights.h5", "backup/training_metadata.json"]
TENSORFLOW = ["checkpoint", "ckpt-1.index", "ckpt-1.data-0", "ckpt-2.index", "ckpt-2.data-0"]


@pytest.mark.parametrize(
    ("files", "patterns", "stored"),
    [
        (TENSORFLOW, DEFAULT_PATTERNS, ["ckpt-2.data-0", "ckpt-2.index", "checkpoint"]),
        (BACKUP, DEFAULT_PATTERNS, BACKUP),
        (["best.keras"], DEFAULT_PATTERNS, ["best.keras"]),
        (["state.npz", "x"], ["*.npz"], ["state.npz"]),
        (["state.npz", "events.out", "search.index"], DEFAULT_PATTERNS, None),
        (["export/saved_model.pb", "export/variables/variables.index", *BACKUP], ["export/**"], None),
        (BACKUP, ["**/saved_model.pb", "**/*.keras", "**/checkpoint"], None),
        ([], DEFAULT_PATTERNS, None),
    ],
    ids=range(8),
)
def test_a_run_moves_with_the_state_that_programs_save_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], patterns: list[str], stored: list[str] | None
) -> None:
    manifest, state = uploaded(files, list(patterns)), run(artifacts=list(patterns))
    there = stopped(tmp_path, manifest)
    for submitted in (RUN.id, ""):
        text = missing_checkpoint(there, state, submitted)
        assert text == "" if stored else "nothing is stored that it could continue from" in text
    assert begins_again(there, state, RUN.id) == (stored is None)
    assert missing_checkpoint(there, state, "another") == "", "another run needs none"
    if stored:
        assert sorted(file.name for file in manifest.files) == sorted(stored)
    monkeypatch.setenv("TFDEPLOY_WITHOUT_CHECKPOINT", "1")
    assert missing_checkpoint(there, state, RUN.id) == "", "the user was asked"


@pytest.mark.parametrize(
    ("state", "manifest", "expected"),
    [
        (run(), EMPTY, True),
        (run(), WHOLE, False),
        (run(SUCCEEDED), EMPTY, False),
        (run(train_dir="s3://bucket/train/run"), EMPTY, False),
    ],
    ids=["lost", "stored", "finished", "a URL"],
)
def test_a_copy_without_a_checkpoint_is_named(
    tmp_path: Path, state: RunState, manifest: ArtifactList, expected: bool
) -> None:
    copied = replace(stopped(tmp_path, manifest), is_current=False)
    source = move_record._Source(cluster_ref("docker"), copied, state)
    assert ("begins again at step 0" in move_record._stale(source, RUN.id)) == expected


def test_tasks_that_have_not_stopped_do_not_train_at_two_places(
    state_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = DockerTaskRunner(engine=lambda _: cast(Any, None))
    monkeypatch.setattr(DockerTaskRunner, "end_run", lambda *_, **__: False)
    with pytest.raises(BackendError, match="the tasks of the run on docker have not stopped, so it does not move"):
        docker.stop_to_move(cluster_ref("docker"))
    cluster = cluster_ref("local", str(state_folder / "tfdeploy/clusters/mnist-0123456789"))
    monkeypatch.setattr(local_runner, "stop_run", lambda *_, **__: False)
    monkeypatch.setattr(local_runner, "launchers_live", lambda _: True)
    with pytest.raises(BackendError, match="the tasks of the run on local have not stopped"):
        LocalTaskRunner().stop_to_move(cluster)
    monkeypatch.setattr(local_runner, "launchers_live", lambda _: False)
    assert LocalTaskRunner().stop_to_move(cluster).is_current
