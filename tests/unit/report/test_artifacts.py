"""The output `artifacts`: what is stored, where, and what is not."""

from dataclasses import replace

import pytest

from tfdeploy.agent.record.artifacts import LIMIT, LeftOut, StoredArtifact
from tfdeploy.agent.record.record import RecordView
from tfdeploy.agent.run_spec import RunSpec
from tfdeploy.agent.run_state import UPLOAD_LOST, UPLOADED, UPLOADING, MachineUpload, RunState
from tfdeploy.backends.base import ObservedState
from tfdeploy.report.report import _artifact_rows, _is_uploading

NOW = 1000.0
FOLDER = "/state/record/runs/run/artifacts"


def observed(*stored: StoredArtifact, left_out: list[LeftOut] | None = None, upload: str = "") -> ObservedState:
    run = RunState(RunSpec("run", [], {}, train_dir="/train/run"), NOW)
    run.uploads = {"gpu-1": MachineUpload("worker-0", NOW, upload)} if upload else {}
    view = RecordView(NOW + 1, run, artifacts=list(stored), left_out=left_out or [])
    return ObservedState(NOW + 1, view, None, {}, "/state/record")


def test_each_artifact_has_the_path_that_tensorflow_takes() -> None:
    rows = _artifact_rows(
        observed(
            StoredArtifact("model", "export/1", 5, path="export/1"),
            StoredArtifact("model", ".", 5, path="."),
            StoredArtifact("checkpoint", "sub/ckpt-7", 5, path="sub/checkpoint"),
            StoredArtifact("keras", "best.keras", 5, path="best.keras"),
            StoredArtifact("files", "logs/**", 5, path="logs/x"),
        )
    )
    assert [row["path"] for row in rows] == [
        f"{FOLDER}/export/1",
        FOLDER,
        f"{FOLDER}/sub/ckpt-7",
        f"{FOLDER}/best.keras",
        FOLDER,
    ]
    assert {(row["size"], row["problem"]) for row in rows} == {(5, "")}


def test_what_is_not_here_has_a_reason_and_no_path() -> None:
    stored = StoredArtifact("keras", "k", 5, path="k", is_complete=False)
    rows = _artifact_rows(observed(stored, left_out=[LeftOut("large", 9, LIMIT, "gpu-1")], upload=UPLOAD_LOST))
    assert [(row["name"], row["kind"], row["path"]) for row in rows] == [
        ("k", "keras", ""),
        ("large", "", ""),
        ("/train/run", "", ""),
    ]
    assert rows[0]["problem"] == "It is not on this computer yet: `pulumi up` copies it."
    assert rows[1]["problem"].startswith("A run stores at most 2 GiB in 2000 files.")
    assert "worker-0 on gpu-1 did not respond" in rows[2]["problem"]


def test_without_a_run_there_are_none() -> None:
    state = observed()
    assert _artifact_rows(replace(state, view=RecordView(NOW))) == []
    assert not _is_uploading(replace(state, view=RecordView(NOW)))


@pytest.mark.parametrize(("upload", "is_complete", "expected"), [
    (UPLOADING, True, True),
    (UPLOADED, True, False),
    (UPLOADED, False, True),
    (UPLOAD_LOST, True, False),
    ("", True, False),
])  # fmt: skip
def test_an_update_waits_for_what_is_on_its_way_for_a_minute(upload: str, is_complete: bool, expected: bool) -> None:
    state = observed(StoredArtifact("keras", "k", 5, path="k", is_complete=is_complete), upload=upload)
    assert _is_uploading(state) is expected
    assert not _is_uploading(replace(state, view=replace(state.view, at=NOW + 61)))
    assert not _is_uploading(replace(state, controller_silent_since=NOW))
