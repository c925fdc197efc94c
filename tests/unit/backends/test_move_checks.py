"""Which run may move: one whose newest checkpoint is stored."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.backends.stopped import EMPTY, RUN, STORED, TOO_LARGE, TOO_MUCH, WHOLE, run, stopped
from tfdeploy.agent.model.run_spec import DEFAULT_PATTERNS
from tfdeploy.agent.model.run_state import FAILED, SUCCEEDED, UPLOAD_LOST, RunState
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile
from tfdeploy.agent.record.artifact_selection import FileInfo, choose, relative_checkpoint
from tfdeploy.agent.record.stored_artifact import NO_MATCH, LeftOut
from tfdeploy.backends.move_checks import begins_again, missing_checkpoint

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
