"""Before machines are replaced, the record of their run is on this computer: whole, or no machine is replaced."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.clusters import cluster_ref
from tests.unit.agent.imported import recorded as recorded_run
from tests.unit.agent.imported import run_state
from tests.unit.agent.served import Served
from tests.unit.agent.served import served as served
from tests.unit.backends.stopped import EMPTY, RUN, TOO_MUCH, WHOLE, run, stopped
from tfdeploy.agent.model.run_state import MOVED, STOP_REQUESTED, STOPPED, SUCCEEDED, UPLOADED, RunResult, RunState
from tfdeploy.agent.record.artifact_manifest import ArtifactList
from tfdeploy.backends import move_record
from tfdeploy.backends.base import Replacement
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.backends.local import task_runner as local_runner
from tfdeploy.backends.local.task_runner import LocalTaskRunner
from tfdeploy.backends.move_checks import RunMover, StoppedRun
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError

CLUSTER = cluster_ref("ec2", "ec2://us-west-2/mnist")
REPLACEMENT = Replacement(("i-0a",))


def recorded(
    manifest: ArtifactList = WHOLE,
    is_whole: bool = True,
    state: str = STOPPED,
    cause: str = MOVED,
    is_current: bool = True,
    started: float = 0.0,
) -> RunMover:
    """What has stopped the run, whose record is in the user's copy with its state and its checkpoint."""
    stored = run(upload=UPLOADED if started else "", started=started)
    stored.result = RunResult(state, cause, 2.0) if state else None
    copy = RecordCopy(CLUSTER).record
    copy.save(stored)
    stopped(copy.folder, manifest, is_whole)
    return cast(RunMover, SimpleNamespace(stop_to_move=lambda _: StoppedRun(copy.folder, is_current)))


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
