"""Before machines are replaced, the record of their run is on this computer: whole, or no machine is replaced."""

from collections.abc import Callable
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
from tfdeploy.agent.model.run_state import (
    MOVED,
    STOP_REQUESTED,
    STOPPED,
    SUCCEEDED,
    UPLOADED,
    LauncherReport,
    MachineUpload,
    RunResult,
    RunState,
)
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, LIMIT, LeftOut
from tfdeploy.backends import move_record
from tfdeploy.backends.base import Replacement
from tfdeploy.backends.move_checks import RunMover, StoppedRun
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError

CLUSTER = cluster_ref("ec2", "ec2://us-west-2/mnist")
RUN = replace(plan(workers=1).run, train_dir="/tfdeploy/train/run")
STORED = ManifestArtifact(CHECKPOINT, "model.ckpt-5", "m0", 0, [ManifestFile("checkpoint", 2, "1")])
TOO_LARGE = LeftOut("model.ckpt-5", 3 << 30, LIMIT, "m0")
REPLACEMENT = Replacement(("i-0a",))

Record = Callable[..., RunMover]
Bring = Callable[[RunMover, Replacement], None]


class Stops:
    """Has stopped the run, whose record is in the user's copy."""

    def __init__(self, is_current: bool) -> None:
        self._is_current = is_current

    def stop_to_move(self, cluster: Any) -> StoppedRun:
        return StoppedRun(RecordCopy(cluster).folder, self._is_current)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A mover, and the copy of a record with the state of its run and the size of the checkpoint."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def record(
        state: str = STOPPED,
        cause: str = MOVED,
        size: int = 2,
        left_out: LeftOut | None = None,
        is_current: bool = True,
        started: float = 0.0,
        is_empty: bool = False,
    ) -> RunMover:
        run = RunState(RUN, 1.0)
        run.tasks["worker-0"].started, run.tasks["worker-0"].report = started, LauncherReport(machine="m0")
        run.uploads = {"m0": MachineUpload("worker-0", 2.0, UPLOADED)} if started else {}
        run.result = RunResult(state, cause, 2.0) if state else None
        copy = RecordCopy(CLUSTER).record
        copy.save(run)
        artifacts = ArtifactList([], [left_out]) if left_out else ArtifactList([] if is_empty else [STORED])
        save_manifest(copy.run_folder(RUN.id), artifacts)
        copy.artifacts_folder(RUN.id).mkdir(exist_ok=True)
        (copy.artifacts_folder(RUN.id) / "checkpoint").write_bytes(b"x" * size)
        return cast(RunMover, Stops(is_current))

    return record


@pytest.fixture
def bring_home(monkeypatch: pytest.MonkeyPatch) -> Bring:
    """What is done with the record of this mover."""

    def bring(mover: RunMover, replacement: Replacement) -> None:
        monkeypatch.setattr(move_record, "mover", lambda _: mover)
        move_record.bring_home(CLUSTER, replacement)

    return bring


@pytest.mark.parametrize("keeps", [False, True])
def test_the_next_controller_chooses_another_folder_unless_the_machines_see_this_one(
    recorded: Record, bring_home: Bring, keeps: bool
) -> None:
    """The same folder of a volume of the user's may have an older checkpoint."""
    bring_home(recorded(), replace(REPLACEMENT, keeps_train_dir=keeps))
    run = RecordCopy(CLUSTER).record.current()
    assert run is not None
    assert run.has_arrived is not keeps


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"is_current": False, "cause": STOP_REQUESTED}, "the controller does not respond"),
        ({"is_current": False, "size": 1}, "only a part could be copied"),
        ({"size": 1}, "only a part could be copied"),
        ({"left_out": TOO_LARGE}, "could not be uploaded: model.ckpt-5"),
        ({"state": ""}, "the copy of its record is not complete"),
        ({"state": SUCCEEDED, "size": 1}, "only a part could be copied"),
    ],
    ids=["silent", "silent since, and partly", "partly", "too large", "an older copy", "a finished run"],
)
def test_what_is_not_whole_replaces_no_machine(
    recorded: Record, bring_home: Bring, args: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BackendError, match=f"no machine is replaced: .*{problem}"):
        bring_home(recorded(**args), REPLACEMENT)


def test_a_run_that_has_stored_nothing_to_continue_from_replaces_no_machine(
    recorded: Record, bring_home: Bring
) -> None:
    with pytest.raises(BackendError, match="no machine is replaced: nothing is stored that it could continue from"):
        bring_home(recorded(started=1.5, is_empty=True), REPLACEMENT)
    for replacement in (replace(REPLACEMENT, keeps_train_dir=True), replace(REPLACEMENT, continues=False)):
        bring_home(recorded(started=1.5, is_empty=True), replacement)
    bring_home(recorded(is_empty=True), REPLACEMENT)  # it has not begun


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_copy_of_what_the_run_has_left_here_is_retained_unless_the_newest_record_has_it(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = run_state(RunResult(STOPPED, MOVED, 2.0))
    recorded_run(served.controller.record.folder, own)
    served.controller.record.save_other(run_state(spec=replace(RUN, id="earlier")))
    there = recorded_run(tmp_path / "there", run_state(moves=1))
    there.set_record_id(served.controller.record.record_id())
    source = move_record._Source(CLUSTER, StoppedRun(there.folder, is_whole), run_state(moves=1))
    said = move_record._stop_here(served.client(), cluster_ref("local", "/home"), own, source)
    assert served.controller.record.runs() == sorted([own.spec.id, "earlier"])
    retained = [path.name for path in (tmp_path / "state").rglob("runs/*")]
    assert (sorted(retained), bool(said)) == ([] if is_whole else sorted([own.spec.id, "earlier"]), not is_whole)
    assert not (tmp_path / "state/tfdeploy/local").exists() or not any((tmp_path / "state/tfdeploy/local").iterdir())
