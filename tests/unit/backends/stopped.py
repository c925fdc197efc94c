"""Runs that have stopped, so that they can move."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.cases import plan
from tfdeploy.agent.model.run_state import MOVED, STOPPED, UPLOADED, LauncherReport, MachineUpload, RunResult, RunState
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, LIMIT, LeftOut
from tfdeploy.backends.move_checks import StoppedRun

RUN = replace(plan(workers=1).run, train_dir="/tfdeploy/train/run")
STORED = ManifestArtifact(CHECKPOINT, "model.ckpt-5", "m0", 0, [ManifestFile("checkpoint", 2, "1")])
TOO_LARGE = LeftOut("model.ckpt-5", 3 << 30, LIMIT, "m0")
WHOLE, TOO_MUCH, EMPTY = ArtifactList([STORED]), ArtifactList([], [TOO_LARGE]), ArtifactList()


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
