"""A copy of a record trusts neither the list of files nor what is read."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tfdeploy.agent.record import replica
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile
from tfdeploy.agent.record.artifact_store import DRAFT_FOLDER
from tfdeploy.agent.record.output import MAX_PIECES
from tfdeploy.agent.record.record_files import PART, Range, RecordFile, small_file
from tfdeploy.agent.record.replica import Replica, read_all

LOG = "runs/r/logs/worker-0"


class Original:
    """The bytes of files by name; at most `step` of them are read by one call."""

    def __init__(self, step: int = 1 << 30) -> None:
        self.files: dict[str, bytes] = {}
        self.step, self.calls = step, 0

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        self.calls += 1
        return [self.files[name][offset : offset + min(size, self.step)] for name, offset, size in ranges[:1]]


def update(
    folder: Path, original: Original, files: Sequence[RecordFile], is_over: Callable[[], bool] = lambda: False
) -> list[str]:
    copy = Replica(folder, is_over)
    copy.store_states(files)
    return read_all(copy.grow(files), original.read)


@pytest.mark.parametrize(
    "name",
    [
        f"{LOG}/0.log",
        "runs/r/artifacts/model/weights",
        "record_id",
        "format",
        "runs/r/events.jsonl",
        "runs/r/other.json",
    ],
)
def test_a_list_has_the_content_of_states_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("what is here")
    update(tmp_path, Original(), [small_file(name, "")._replace(size=0)])
    assert path.read_text() == "what is here"
    update(tmp_path, Original(), [small_file("current", "r")])
    assert (tmp_path / "current").read_text() == "r"


def test_of_a_task_the_newest_pieces_are_copied(tmp_path: Path) -> None:
    files = [RecordFile(f"{LOG}/{number}.log", 1) for number in range(MAX_PIECES + 40)]
    original = Original()
    original.files = {file.name: b"x" for file in files}
    update(tmp_path, original, files)
    copied = sorted(int(path.stem) for path in (tmp_path / LOG).iterdir())
    assert copied == [*range(40, MAX_PIECES + 40)]


def test_an_update_out_of_time_leaves_the_rest_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "_LEAST_BYTES", 100)
    original = Original(step=100)
    original.files = {f"{LOG}/{number}.log": b"x" * 100 for number in (0, 100, 200)}
    files = [RecordFile(name, 100) for name in original.files]
    assert len(update(tmp_path, original, files, lambda: True)) == 2
    assert update(tmp_path, original, files) == []


def test_what_has_arrived_of_a_checkpoint_that_was_replaced_meanwhile_does_not_pile_up(tmp_path: Path) -> None:
    """A copy that is slower than the checkpoints are written has one of them in part, and none when it has the newest."""
    drafts = tmp_path / "runs/r" / DRAFT_FOLDER
    for step in range(5):
        data, name = bytes([step]) * (PART + 1), f"runs/r/artifacts/c-{step}"
        sha256 = hashlib.sha256(data).hexdigest()
        file = ManifestFile(f"c-{step}", len(data), "1", sha256)
        manifest = ArtifactList([ManifestArtifact("checkpoint", f"c-{step}", "a", 0, [file])])
        original, turns = Original(), iter([False, True, True])
        original.files = {name: data}
        listed = [
            small_file("runs/r/artifacts.json", json.dumps(manifest.to_dict())),
            RecordFile(name, len(data), sha256),
        ]
        read_all(Replica(tmp_path, turns.__next__).fetch_artifacts(listed), original.read)
        assert [path.stat().st_size for path in drafts.iterdir()] == [PART]
    assert read_all(Replica(tmp_path).fetch_artifacts(listed), original.read) == []
    assert not drafts.exists()


@pytest.mark.parametrize("limit", ["CLUSTER_BYTES", "MAX_FILES"])
def test_each_limit_alone_ends_what_is_copied_of_artifacts(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(replica, limit, 2)
    artifacts = [ManifestArtifact("model", str(name), "a", 0, [ManifestFile("f", 1, "1", "")]) for name in range(3)]
    assert [*replica._within_limits(artifacts)] == artifacts[:2]
