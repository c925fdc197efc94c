"""The user's copy gets the artifacts in parts, checks them, and names what it has not."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tfdeploy.agent.artifact_manifest import ArtifactList, ManifestArtifact, ManifestFile, read_part, stored_artifacts
from tfdeploy.agent.rpc import CallError
from tfdeploy.backends import artifact_copy
from tfdeploy.backends.artifact_copy import copy_artifacts
from tfdeploy.backends.record_copy import RecordCopy


class Controller:
    """A controller with these artifacts."""

    def __init__(self, folder: Path, **files: bytes) -> None:
        self.folder, self.calls = folder, 0
        self.put(**files)

    def put(self, **files: bytes) -> None:
        """Another upload."""
        listed = [
            ManifestArtifact(
                "keras", name, "m", 0, [ManifestFile(name, len(data), "1", hashlib.sha256(data).hexdigest())]
            )
            for name, data in files.items()
        ]
        for name, data in files.items():
            (self.folder / "artifacts" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "artifacts" / name).write_bytes(data)
        self.manifest: dict[str, Any] = ArtifactList(listed).to_dict()
        (self.folder / "artifacts.json").write_text(json.dumps(self.manifest))

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        self.calls += 1
        request = json.loads(body)
        assert (method, path, request["run_id"]) == ("POST", "/artifact", "run")
        return read_part(self.folder, request["name"], request["offset"], request["size"])

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        raise NotImplementedError


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(artifact_copy, "_PART", 4)
    folder = tmp_path / "copy" / "run"
    folder.mkdir(parents=True)
    return folder


def files(run_folder: Path) -> dict[str, bytes]:
    folder = run_folder / "artifacts"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_files_are_fetched_once_and_those_that_changed_again(tmp_path: Path, copy: Path) -> None:
    controller = Controller(tmp_path / "run", one=b"content", two=b"")
    assert copy_artifacts(controller, copy, controller.manifest)
    assert files(copy) == {"one": b"content", "two": b""}
    assert controller.calls == 2
    assert copy_artifacts(controller, copy, controller.manifest)
    assert controller.calls == 2
    controller.put(one=b"CONTENT")
    assert copy_artifacts(controller, copy, controller.manifest)
    assert files(copy) == {"one": b"CONTENT"}
    assert not (copy / "artifacts.draft").exists()


def test_what_takes_too_long_is_continued_by_the_next_observation(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = Controller(tmp_path / "run", one=b"content")
    clock = iter([0.0, 0.0, 9.0])
    with monkeypatch.context() as patch:
        patch.setattr("tfdeploy.backends.artifact_copy.time.monotonic", lambda: next(clock))
        assert not copy_artifacts(controller, copy, controller.manifest, 3.0)
    assert controller.calls == 1
    assert [row.is_complete for row in stored_artifacts(copy)[0]] == [False]
    assert copy_artifacts(controller, copy, controller.manifest)
    assert controller.calls == 2
    assert [row.is_complete for row in stored_artifacts(copy)[0]] == [True]


def test_a_file_that_is_damaged_on_its_way_is_fetched_again(tmp_path: Path, copy: Path) -> None:
    controller = Controller(tmp_path / "run", one=b"content")
    (tmp_path / "run/artifacts/one").write_bytes(b"damaged")
    assert not copy_artifacts(controller, copy, controller.manifest)
    assert files(copy) == {}
    (tmp_path / "run/artifacts/one").write_bytes(b"content")
    assert copy_artifacts(controller, copy, controller.manifest)


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "", "a\0b", 1])
def test_a_cluster_names_no_file_outside_of_the_record(tmp_path: Path, copy: Path, name: Any) -> None:
    controller = Controller(tmp_path / "run", one=b"content")
    controller.manifest["artifacts"][0]["files"][0]["name"] = name
    assert copy_artifacts(controller, copy, controller.manifest)
    assert (controller.calls, files(copy)) == (0, {})


@pytest.mark.parametrize("manifest", [None, {}, {"artifacts": 1}, {"artifacts": [{}], "left_out": []}])
def test_an_older_controller_has_none(tmp_path: Path, copy: Path, manifest: Any) -> None:
    controller = Controller(tmp_path / "run", one=b"content")
    assert copy_artifacts(controller, copy, manifest)
    assert controller.calls == 0


def test_a_record_that_is_retired_names_what_it_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    copied = RecordCopy(cluster_ref("docker"))
    run_folder = copied.record.run_folder("run")
    run_folder.mkdir(parents=True)
    controller = Controller(tmp_path / "run", one=b"content")

    class Refusing(Controller):
        def call(self, method: str, path: str, body: bytes = b"") -> bytes:
            raise CallError("no")

    refusing = Refusing(tmp_path / "run", one=b"content")
    with pytest.raises(CallError):
        copy_artifacts(refusing, run_folder, controller.manifest)
    assert copied.retire().startswith("these artifacts could not be copied: one of run run; the record is retained in ")
