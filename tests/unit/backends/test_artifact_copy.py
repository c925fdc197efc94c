"""The user's copy gets the artifacts in parts, checks them, and names what it has not."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tfdeploy.agent.record import record_sync
from tfdeploy.agent.record.artifact_manifest import (
    ArtifactList,
    ManifestArtifact,
    ManifestFile,
    read_part,
    stored_artifacts,
)
from tfdeploy.agent.record.artifacts import CLUSTER_LIMIT, LIMIT, LeftOut
from tfdeploy.agent.transport.rpc import CallError
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
    assert files(copy) == {"one": b"CONTENT", "two": b""}
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


class Ending(Controller):
    """Ends after so many calls: its machine is lost."""

    left = 99

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("gone")
        request = json.loads(body)
        (item,) = [
            file
            for artifact in self.manifest["artifacts"]
            for file in artifact["files"]
            if file["name"] == request["name"]
        ]
        data = f"{self.manifest['artifacts'][0]['name']} {item['version']}".encode()
        return data[request["offset"] :][: request["size"]]


def listed(name: str, *paths: str, version: str = "1") -> dict[str, Any]:
    """The manifest of a record with one checkpoint, whose files contain their version."""
    data = {path: f"{name} {version}".encode() for path in paths}
    files = [ManifestFile(path, len(it), version, hashlib.sha256(it).hexdigest()) for path, it in data.items()]
    return ArtifactList([ManifestArtifact("checkpoint", name, "m", 0, files)]).to_dict()


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (listed("c-6", "c-6.index", "checkpoint", version="2"), {"c-6.index": b"c-6 2", "checkpoint": b"c-6 2"}),
        (listed("c-5", "c-5.index", "checkpoint", version="2"), {"c-5.index": b"c-5 2", "checkpoint": b"c-5 2"}),
        (
            listed("d/c-1", "d/c-1.index", "d/checkpoint"),
            {"c-5.index": b"c-5 1", "checkpoint": b"c-5 1", "d/c-1.index": b"d/c-1 1", "d/checkpoint": b"d/c-1 1"},
        ),
        (ArtifactList([], [LeftOut("x", 1, LIMIT, "m")]).to_dict(), {"c-5.index": b"c-5 1", "checkpoint": b"c-5 1"}),
        (ArtifactList([], [LeftOut("c-5", 1, CLUSTER_LIMIT, "m")]).to_dict(), {}),
    ],
    ids=["newer", "changed", "of another folder", "none any more", "beyond the limit that is stated"],
)
def test_a_copy_stores_its_checkpoint_until_what_replaces_it_is_complete(
    tmp_path: Path, copy: Path, later: dict[str, Any], left: dict[str, bytes]
) -> None:
    (tmp_path / "run").mkdir()
    controller = Ending(tmp_path / "run")
    controller.manifest = first = listed("c-5", "c-5.index", "checkpoint")
    assert copy_artifacts(controller, copy, first)
    before = {"c-5.index": b"c-5 1", "checkpoint": b"c-5 1"}
    controller.manifest = later
    names = [artifact["name"] for artifact in later["artifacts"]]
    for calls in range(4 if names else 0):
        controller.left = calls
        with suppress(ConnectionError):
            if copy_artifacts(controller, copy, later):
                break
        assert files(copy) == before, "no part of it is replaced"
        rows = [(row.name, row.is_complete) for row in stored_artifacts(copy)[0]]
        assert rows == [("c-5", True), (names[0], False)], "and what is to come is named"
    controller.left = 99
    assert copy_artifacts(controller, copy, later)
    assert files(copy) == left


def test_a_copy_has_limits_whatever_the_cluster_lists(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = Controller(tmp_path / "run", one=b"12345", two=b"123456", three=b"1")
    monkeypatch.setattr(artifact_copy, "CLUSTER_BYTES", 10)
    assert not copy_artifacts(controller, copy, controller.manifest)
    assert [(row.name, row.is_complete) for row in stored_artifacts(copy)[0]] == [
        ("one", True),
        ("two", False),
        ("three", False),
    ]
    monkeypatch.setattr(Controller, "call", lambda *_: b"x" * 1000)
    monkeypatch.setattr(artifact_copy, "CLUSTER_BYTES", 1000)
    with pytest.raises(CallError, match="returned 1000 bytes of two, more than it lists"):
        copy_artifacts(controller, copy, controller.manifest)


def test_a_manifest_that_cannot_be_read_deletes_nothing(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = Controller(tmp_path / "run", one=b"content")
    assert copy_artifacts(controller, copy, controller.manifest)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        assert record_sync._artifacts(tmp_path / "run") is None, "a controller that cannot read it lists nothing"
        with pytest.raises(OSError, match="Input/output error"):
            copy_artifacts(controller, copy, ArtifactList([], [LeftOut("x", 1, LIMIT)]).to_dict())
    assert files(copy) == {"one": b"content"}


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
