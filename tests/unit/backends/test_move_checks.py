"""What may move, and what the image counts in the name of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import plan
from tfdeploy.agent.model.run_spec import DEFAULT_PATTERNS
from tfdeploy.agent.model.run_state import (
    FAILED,
    MOVED,
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
from tfdeploy.agent.record.artifacts import FileInfo, choose, relative_checkpoint
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, LIMIT, NO_MATCH, LeftOut
from tfdeploy.backends import move_record
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.local import task_runner as local_runner
from tfdeploy.backends.local.task_runner import LocalTaskRunner
from tfdeploy.backends.move_checks import StoppedRun, begins_again, missing_checkpoint
from tfdeploy.errors import BackendError

RUN = RunState(replace(plan(workers=1).run, train_dir="/former/run"), 1.0)
STORED = ManifestArtifact(CHECKPOINT, "model.ckpt-5", "laptop", 0, [ManifestFile("checkpoint", 2, "1")])
TOO_LARGE = LeftOut("model.ckpt-5", 3 << 30, LIMIT, "laptop")


def stopped(folder: Path, manifest: ArtifactList, has_files: bool = True) -> StoppedRun:
    record = Record(folder)
    save_manifest(record.run_folder(RUN.spec.id), manifest)
    record.artifacts_folder(RUN.spec.id).mkdir()
    (record.artifacts_folder(RUN.spec.id) / "checkpoint").write_text("42" if has_files else "")
    return StoppedRun(folder, is_current=True)


def run(state: str = STOPPED, upload: str = UPLOADED, started: float = 1.5, **changes: Any) -> RunState:
    changed = RunState(replace(RUN.spec, **{"artifacts": ["export"], **changes}), 1.0)
    task = changed.tasks["worker-0"]
    task.report, task.started = LauncherReport(machine="laptop"), started
    changed.result = RunResult(state, MOVED, 2.0)
    changed.uploads = {"laptop": MachineUpload("worker-0", 2.0, upload)} if upload else {}
    return changed


@pytest.mark.parametrize(
    ("state", "manifest", "has_files", "problem"),
    [
        (run(), ArtifactList([STORED]), True, ""),
        (run(), ArtifactList(), True, "nothing is stored that it could continue from: `artifacts` (export) names no"),
        (run(), ArtifactList([], [LeftOut("*.csv", 0, NO_MATCH, "laptop")]), True, "nothing is stored"),
        (run(started=0.0, upload=""), ArtifactList(), True, ""),
        (run(serve=True), ArtifactList(), True, ""),
        (run(), ArtifactList([STORED], [replace(TOO_LARGE, name="export")]), True, ""),
        (run(), ArtifactList([], [TOO_LARGE]), True, "could not be uploaded: model.ckpt-5"),
        (run(), ArtifactList([STORED]), False, "only a part could be copied"),
        (run(upload=UPLOAD_LOST), ArtifactList([STORED]), True, "what laptop has in /former/run could not be uploaded"),
        (run(SUCCEEDED), ArtifactList([], [TOO_LARGE]), True, ""),
        (run(train_dir="s3://bucket/train/run"), ArtifactList([], [TOO_LARGE]), True, ""),
        (run(FAILED), ArtifactList([], [TOO_LARGE]), True, "could not be uploaded: model.ckpt-5"),
        (run(upload=""), ArtifactList(), True, "what laptop has in /former/run could not be uploaded"),
        (run(upload="", artifacts=[]), ArtifactList(), True, "`artifacts` (an empty list) names no"),
        (run(upload="", started=0.0), ArtifactList([STORED]), True, ""),
    ],
)
def test_a_run_moves_with_its_newest_checkpoint_or_not_at_all(
    tmp_path: Path, state: RunState, manifest: ArtifactList, has_files: bool, problem: str
) -> None:
    text = missing_checkpoint(stopped(tmp_path, manifest, has_files), state, RUN.spec.id)
    assert problem in text
    assert bool(problem) == bool(text)


def uploaded(names: list[str], patterns: list[str]) -> ArtifactList:
    """What an upload of these files stores. Those of TensorFlow name the last checkpoint."""
    files = {name: FileInfo(1, number) for number, name in enumerate(names)}
    chosen, left_out = choose(files, patterns, lambda _: relative_checkpoint("ckpt-2"))
    return ArtifactList(
        [
            ManifestArtifact(
                item.kind, item.name, "laptop", 0, [ManifestFile(it.name, it.size, it.version) for it in item.files]
            )
            for item in chosen
        ],
        left_out,
    )


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
    record = Record(tmp_path)
    save_manifest(record.run_folder(RUN.spec.id), manifest)
    for file in manifest.files:
        (record.artifacts_folder(RUN.spec.id) / file.name).parent.mkdir(parents=True, exist_ok=True)
        (record.artifacts_folder(RUN.spec.id) / file.name).write_text("1" * file.size)
    there = StoppedRun(tmp_path, is_current=True)
    for submitted in (RUN.spec.id, ""):
        text = missing_checkpoint(there, state, submitted)
        assert text == "" if stored else "nothing is stored that it could continue from" in text
    assert begins_again(there, state, RUN.spec.id) == (stored is None)
    assert missing_checkpoint(there, state, "another") == "", "another run needs none"
    if stored:
        assert sorted(file.name for file in manifest.files) == sorted(stored)
    monkeypatch.setenv("TFDEPLOY_WITHOUT_CHECKPOINT", "1")
    assert missing_checkpoint(there, state, RUN.spec.id) == "", "the user was asked"


@pytest.mark.parametrize(
    ("state", "manifest", "expected"),
    [
        (run(), ArtifactList(), True),
        (run(), ArtifactList([STORED]), False),
        (run(SUCCEEDED), ArtifactList(), False),
        (run(train_dir="s3://bucket/train/run"), ArtifactList(), False),
    ],
    ids=["lost", "stored", "finished", "a URL"],
)
def test_a_copy_without_a_checkpoint_is_named(
    tmp_path: Path, state: RunState, manifest: ArtifactList, expected: bool
) -> None:
    copied = replace(stopped(tmp_path, manifest), is_current=False)
    source = move_record._Source(cluster_ref("docker"), copied, state)
    assert ("begins again at step 0" in move_record._stale(source, RUN.spec.id)) == expected


def test_tasks_that_have_not_stopped_do_not_train_at_two_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    docker = DockerTaskRunner(engine=lambda _: cast(Any, None))
    monkeypatch.setattr(DockerTaskRunner, "end_run", lambda *_, **__: False)
    with pytest.raises(BackendError, match="the tasks of the run on docker have not stopped, so it does not move"):
        docker.stop_to_move(cluster_ref("docker"))
    cluster = cluster_ref("local", str(tmp_path / "state/tfdeploy/clusters/mnist-0123456789"))
    monkeypatch.setattr(local_runner, "stop_run", lambda *_, **__: False)
    monkeypatch.setattr(local_runner, "launchers_live", lambda _: True)
    with pytest.raises(BackendError, match="the tasks of the run on local have not stopped"):
        LocalTaskRunner().stop_to_move(cluster)
    monkeypatch.setattr(local_runner, "launchers_live", lambda _: False)
    assert LocalTaskRunner().stop_to_move(cluster).is_current
