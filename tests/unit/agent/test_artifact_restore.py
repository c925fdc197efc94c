"""Paths of artifacts lead nowhere else."""

import hashlib
import os
from pathlib import Path

import pytest

from tfdeploy.agent.launch import artifact_restore
from tfdeploy.agent.launch.artifact_restore import without_restored
from tfdeploy.agent.launch.artifact_sender import scan
from tfdeploy.agent.record.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, save_manifest
from tfdeploy.agent.record.artifact_selection import Artifact, ArtifactFile, choose
from tfdeploy.agent.record.restorable import restorable, restored_path
from tfdeploy.agent.record.stored_artifact import CHECKPOINT, FILES, KERAS


def test_what_a_run_has_complete_is_restorable(tmp_path: Path) -> None:
    files = [
        ManifestFile("saved/model.ckpt-5.index", 5, "1", "its own"),
        ManifestFile("saved/checkpoint", 4, "1", "known"),
    ]
    damaged = ManifestArtifact("keras", "k", "a", 0, [ManifestFile("k", 3, "1")])
    save_manifest(
        tmp_path, ArtifactList([ManifestArtifact("checkpoint", "saved/model.ckpt-5", "a", 0, files), damaged])
    )
    (tmp_path / "artifacts/saved").mkdir(parents=True)
    for name, content in (("saved/model.ckpt-5.index", "index"), ("saved/checkpoint", "text"), ("k", "1"), ("x", "x")):
        (tmp_path / "artifacts" / name).write_text(content)
    assert restorable(tmp_path) == [("saved/model.ckpt-5.index", 5, "its own"), ("saved/checkpoint", 4, "known")]
    assert restorable(tmp_path / "none") == []
    (tmp_path / "artifacts.json").write_text("damaged")
    assert ("k", 1, hashlib.sha256(b"1").hexdigest()) in restorable(tmp_path), "of a list that is made anew, too"


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "", "a//b", "./a", "a\0b", "link/passwd"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ValueError, match=r"artifact"):
        restored_path(tmp_path, path)


def uploaded(train: Path) -> list[str]:
    """What of this `train_dir` would be uploaded at the end."""
    return [item.name for item in without_restored(train, choose(scan(train)[0], ["**/*.keras"], lambda _: "")[0])]


@pytest.mark.parametrize(("size", "content"), [(5, "world"), (6, "hello"), (5, "hello")])
def test_a_file_that_arrives_with_another_size_or_content_is_not_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, content: str
) -> None:
    class Damaging:
        """A controller that lists one file, and sends another content."""

        def __init__(self, *_: object) -> None:
            """It needs no address."""

        def __enter__(self) -> "Damaging":
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

        def json(self, *_: object) -> dict[str, object]:
            file = {"path": "a.keras", "size": size, "sha256": hashlib.sha256(b"hello").hexdigest()}
            return {"is_own": True, "files": [file]}

        def download(self, _: str, path: Path) -> None:
            path.write_text(content)

    monkeypatch.setattr(artifact_restore, "Client", Damaging)
    if (size, content) == (5, "hello"):
        artifact_restore.restore("", "", "run", str(tmp_path))
        assert (tmp_path / "a.keras").read_text() == "hello"
        assert uploaded(tmp_path) == []
        (tmp_path / "a.keras").write_text("hello")
        assert uploaded(tmp_path) == ["a.keras"], "the program has written it again"
        return
    with pytest.raises(ValueError, match=r"a\.keras arrived damaged"):
        artifact_restore.restore("", "", "run", str(tmp_path))
    assert not (tmp_path / "a.keras").exists()


def test_what_was_restored_is_not_uploaded_again_while_it_is_unchanged(tmp_path: Path) -> None:
    same, newer = ArtifactFile("a", 5, "1000000000"), ArtifactFile("b", 5, "2")
    made = [(KERAS, [same]), (FILES, [same, newer]), (CHECKPOINT, [same, newer])]
    artifacts = [Artifact(kind, kind, files) for kind, files in made]
    artifacts.append(Artifact(CHECKPOINT, "c-1", [same, ArtifactFile("checkpoint", 5, "text 9", "c-1")]))
    assert list(without_restored(tmp_path, artifacts)) == artifacts
    (tmp_path / ".tfdeploy-restored").touch()
    os.utime(tmp_path / ".tfdeploy-restored", (1, 1))
    assert list(without_restored(tmp_path, artifacts)) == [Artifact(FILES, FILES, [newer]), artifacts[2]]
