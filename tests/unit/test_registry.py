"""Clusters are found by what was written down of them."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import plan, spec
from tfdeploy import registry
from tfdeploy.agent.model.run_spec import RunSpec, TaskSpec
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.local.paths import write_private
from tfdeploy.errors import SpecError
from tfdeploy.paths import RECORDS_FOLDER, cluster_folder, state_folder
from tfdeploy.report.expected_state import ExpectedState, expected_of, expected_state

CLUSTER = cluster_ref("local", "/nowhere")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def entry(begun: float = 1.0, name: str = "mnist") -> registry.Entry:
    shape = expected_state(plan(ps=1, workers=2), spec(ps=1, workers=2))
    cluster: ClusterRef = {**CLUSTER, "name": name}
    return registry.Entry(cluster, "/folder", shape, {"workers": "2"}, {"python": "3"}, begun, created=begun)


def test_an_update_does_not_change_when_a_cluster_was_created() -> None:
    for begun in (1.0, 9.0):
        registry.write(replace(entry(begun), created=0.0))
    (found,) = registry.entries()
    assert (found.begun, found.created) == (9.0, 1.0)


def archive(cluster: ClusterRef, stamp: str) -> Path:
    path = state_folder() / RECORDS_FOLDER / cluster_folder(cluster) / stamp
    (path / "record").mkdir(parents=True)
    return path


NOW = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC).timestamp()
MONTH = 30 * 86400.0


def destroyed(id_: str) -> registry.Entry:
    """An earlier cluster of the same stack, in the registry."""
    found = replace(entry(1.0), cluster={**CLUSTER, "id": id_}, ended=1.0)
    registry.write(found)
    return found


def test_archives_of_a_stack_expire_and_others_do_not() -> None:
    present, earlier, other = entry(3.0), destroyed("earlierone"), replace(entry(2.0, "other"), ended=2.0)
    registry.write(other)
    old = archive(earlier.cluster, "20260101T000000.000000Z")
    in_use = archive(earlier.cluster, "20260102T000000.000000Z")
    link = state_folder() / "train"
    link.symlink_to(in_use)
    archive(earlier.cluster, "20260301T000000.000000Z")
    archive(other.cluster, "20260101T000000.000000Z")
    archive(earlier.cluster, "my own copy")
    assert registry.expired_archives(present, MONTH, NOW, [f"{in_use}/train", "s3://bucket/train"]) == [old]
    assert registry.expired_archives(present, MONTH, NOW, [f"{link}/run"]) == [old]
    assert len(registry.stored_records(present)) == 4


def test_the_newest_record_and_the_newest_checkpoints_of_a_stack_never_expire() -> None:
    first, second = destroyed("earlierone"), destroyed("laterone")
    oldest = archive(first.cluster, "20250101T000000.000000Z")
    checkpoints = archive(first.cluster, "20250102T000000.000000Z")
    (checkpoints / "train").mkdir()
    archive(second.cluster, "20250103T000000.000000Z")
    own = archive(second.cluster, "my own copy")
    (own / "train").mkdir()
    assert registry.expired_archives(entry(3.0), MONTH, NOW, []) == [oldest]


def test_a_crash_of_the_machine_leaves_no_empty_file(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda number: synced.append(Path(f"/proc/self/fd/{number}").resolve().name))
    registry.write(entry())
    write_private(state_folder() / "token", "secret")
    assert [name.split(".")[1] for name in synced] == [registry.path_of(CLUSTER).stem.split(".")[0], "token"]


@pytest.mark.parametrize("place", ["train/run/checkpoint", "record/runs/run/artifacts/model.ckpt-5.index"])
def test_the_newest_folder_that_has_checkpoints_never_expires(place: str) -> None:
    """The later runs have failed before their first checkpoint."""
    cluster = destroyed("earlierone").cluster
    oldest, newest, *later = [archive(cluster, f"2025010{number}T000000.000000Z") for number in range(1, 5)]
    for folder in (oldest, newest):
        (folder / place).parent.mkdir(parents=True)
        (folder / place).write_text("the only copy")
    for folder in later:
        (folder / "train/run").mkdir(parents=True)
        (folder / "record/runs/run/artifacts").mkdir(parents=True)
    assert registry.expired_archives(entry(3.0), MONTH, NOW, []) == [later[0], oldest]


def test_a_record_of_a_cluster_that_was_not_destroyed_never_expires() -> None:
    present, lost = entry(3.0), replace(destroyed("lostone"), ended=0.0)
    registry.write(lost)  # another login's, or one whose state was lost: it may still run
    for cluster in (present.cluster, lost.cluster):
        archive(cluster, "20250101T000000.000000Z")
        archive(cluster, "20250102T000000.000000Z")
    old = archive(destroyed("earlierone").cluster, "20240101T000000.000000Z")
    assert registry.expired_archives(present, MONTH, NOW, []) == [old]


def test_only_the_user_can_read_it() -> None:
    registry.write(entry())
    paths = [state_folder(), registry.folder(), registry.path_of(CLUSTER)]
    assert [path.stat().st_mode & 0o77 for path in paths] == [0, 0, 0]


@pytest.mark.parametrize(
    "text",
    [
        '{"cluster": ',
        "[" * 100_000,
        json.dumps({"cluster": CLUSTER, "folder": "/folder", "expected": 0})[:-1] + ', "options": ' + '{"a":' * 50_000,
        '{"cluster": {"name": "mnist"}, "folder": "/folder", "expected": {"tasks": [], "machines": []}}',
        json.dumps({"cluster": CLUSTER, "folder": "/folder", "shape": {"tasks": []}}),
    ],
)
def test_a_file_of_another_version_is_skipped_with_one_warning(text: str, caplog: pytest.LogCaptureFixture) -> None:
    registry.write(entry())
    other = registry.folder() / "p.dev.other.json"
    other.write_text(text)
    assert registry.entries() == registry.entries() == [entry()]
    (warning,) = caplog.messages
    assert f"{other}: cannot be read, because it is damaged or another version of tfdeploy wrote it" in warning
    with pytest.raises(SpecError, match=r"Destroy the cluster with that version, or delete the file\.") as error:
        registry.read(other)
    assert error.value.where == str(other)


def test_a_file_of_another_version_stays_as_it_is_when_its_cluster_is_destroyed() -> None:
    registry.write(entry())
    registry.path_of(CLUSTER).write_text("{}")
    registry.mark_destroyed(CLUSTER)
    assert registry.path_of(CLUSTER).read_text() == "{}"
    assert registry.latest(entry(5.0)) == entry(5.0)


def test_a_destroyed_cluster_is_known_until_it_is_made_again() -> None:
    registry.write(entry())
    registry.mark_destroyed(CLUSTER)
    (found,) = registry.entries()
    assert found.ended > 0
    assert replace(found, ended=0.0) == entry()
    registry.write(entry(3.0))
    assert registry.entries()[0].ended == 0
    registry.mark_destroyed({**CLUSTER, "name": "unknown"})
    assert len(registry.entries()) == 1


def test_an_outline_is_the_same_after_json_and_known_from_a_job_alone() -> None:
    shape = entry().expected
    assert ExpectedState.from_dict(shape.to_dict()) == shape
    job = RunState(RunSpec("0123", [TaskSpec("worker-0", "worker", 0)], {}), 0.0)
    assert [task.hostname for task in expected_of(job).tasks] == ["worker-0"]
    assert expected_of(None).tasks == ()


def test_a_cluster_that_moves_is_shown_where_its_run_is() -> None:
    local = entry(1.0)
    moving = replace(entry(2.0), cluster={**CLUSTER, "backend": "docker"})
    registry.write_for_update(local)
    registry.write_for_update(moving)
    assert registry.entries() == [local], "the run is still there"
    registry.mark_destroyed(moving.cluster)
    assert registry.entries() == [local], "what the failed update created is deleted"
    registry.confirm_move(moving.cluster)
    assert registry.entries() == [replace(moving, created=1.0)]
    registry.confirm_move(moving.cluster)
    registry.mark_destroyed(local.cluster)
    assert registry.entries()[0].ended == 0.0, "only the former place is deleted"
    registry.mark_destroyed(moving.cluster)
    assert registry.entries()[0].ended > 0.0
    registry.write_for_update(entry(3.0))
    assert registry.entries()[0].cluster["backend"] == "local", "a cluster that was destroyed does not move"
