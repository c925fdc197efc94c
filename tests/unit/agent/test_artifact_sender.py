"""A launcher sends what a controller is missing; what it cannot send is named, and does not stop the rest."""

import json
import os
from pathlib import Path
from typing import IO, Any

import pytest

from tfdeploy.agent.launch import artifact_sender
from tfdeploy.agent.launch.artifact_sender import ArtifactSender, Interrupted
from tfdeploy.agent.model.sync import UploadRequest
from tfdeploy.agent.record.artifact_manifest import load_manifest
from tfdeploy.agent.record.artifact_store import ArtifactStore
from tfdeploy.agent.record.stored_artifact import CHANGED, DISK_FULL, LIMIT, UNREADABLE, WRONG_HASH, LeftOut

RUN = "0123456789ab"


class Calls:
    def __init__(self, runs: Path, train: Path) -> None:
        self.store, self.train, self.attempt = ArtifactStore(runs), train, 1
        self.left_out: list[LeftOut] | None = None
        self.parts: list[bytes] = []

    def json(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if method == "PUT":
            return {"drafts": self.store.begin(RUN, "a", json.loads(json.dumps(body["artifacts"])))}
        if path.endswith("/whole"):
            drafts, is_refused = self.store.store(RUN, "a", self.attempt, json.loads(json.dumps(body)))
            return {"drafts": drafts, "is_refused": is_refused}
        self.left_out = [LeftOut.from_dict(item) for item in body["left_out"]]
        self.store.end(RUN, "a", body["names"], self.left_out)
        return {}

    def json_bytes(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        draft, offset = path.split("/")[4:]
        self.parts.append(body)
        return {"end": self.store.put(RUN, "a", draft, int(offset), body)}


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    train = tmp_path / "train"
    train.mkdir()
    for name in ("one.keras", "two.keras"):
        (train / name).write_bytes(name.encode())
    return Calls(tmp_path / "runs", train)


def save(calls: Calls, step: int, size: int = 9) -> None:
    """Save a checkpoint as TensorFlow does; the last two stay."""
    (calls.train / f"c-{step}.data-00000-of-00001").write_bytes(os.urandom(size))
    (calls.train / f"c-{step}.index").write_text(f"index {step}")
    (calls.train / "checkpoint").write_text(f'model_checkpoint_path: "{calls.train}/c-{step}"')
    for path in calls.train.glob(f"c-{step - 2}.*"):
        path.unlink()


def while_running(calls: Calls) -> ArtifactSender:
    request = UploadRequest(RUN, str(calls.train), ["**/*.keras", "**/checkpoint"], 0.001)
    return ArtifactSender(calls, "worker-0", request, lambda _: False)  # type: ignore[arg-type]


def sender(calls: Calls, is_interrupted: bool = False) -> ArtifactSender:
    request = UploadRequest(RUN, str(calls.train), ["**/*.keras"])
    return ArtifactSender(calls, "worker-0", request, lambda _: is_interrupted)  # type: ignore[arg-type]


def stored(calls: Calls) -> set[str]:
    return {item.name for item in load_manifest(calls.store._runs / RUN).artifacts}


def test_all_is_sent_once(calls: Calls) -> None:
    sender(calls).send()
    assert (stored(calls), calls.left_out) == ({"one.keras", "two.keras"}, [])
    sent = len(calls.parts)
    sender(calls).send()
    assert len(calls.parts) == sent


@pytest.mark.parametrize(("damaged", "is_stored"), [(1, True), (99, False)])
def test_a_part_that_is_damaged_on_its_way_is_sent_again_and_named_at_last(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, damaged: int, is_stored: bool
) -> None:
    put, count = calls.store.put, iter(range(999))

    def damage(run: str, machine: str, draft: str, offset: int, data: bytes) -> int:
        is_damaged = data == b"one.keras" and next(count) < damaged
        return put(run, machine, draft, offset, b"x" * len(data) if is_damaged else data)

    monkeypatch.setattr(calls.store, "put", damage)
    sender(calls).send()
    assert calls.left_out is not None
    assert [item.reason for item in calls.left_out] == ([] if is_stored else [WRONG_HASH])
    assert len(stored(calls)) == 1 + is_stored


def test_a_file_that_cannot_be_read_is_named(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refuse(path: str, *rest: Any) -> int:
        if path.endswith(".keras"):
            raise PermissionError
        return real_open(path, *rest)

    monkeypatch.setattr("os.open", refuse)
    sender(calls).send()
    assert calls.left_out is not None
    assert {item.reason for item in calls.left_out} == {UNREADABLE}


def test_a_file_that_always_changes_is_named(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    read = artifact_sender._read

    def change(content: IO[bytes], size: int) -> bytes:
        (calls.train / "one.keras").touch()
        return read(content, size)

    monkeypatch.setattr(artifact_sender, "_read", change)
    sender(calls).send()
    assert calls.left_out == [LeftOut("one.keras", 9, CHANGED)]
    assert stored(calls) == {"two.keras"}


def test_a_file_that_is_removed_before_its_turn_is_no_artifact(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    json_bytes = calls.json_bytes

    def remove(method: str, path: str, body: bytes) -> dict[str, Any]:
        for other in {"one.keras", "two.keras"} - {body.decode()}:
            (calls.train / other).unlink(missing_ok=True)
        return json_bytes(method, path, body)

    monkeypatch.setattr(calls, "json_bytes", remove)
    sender(calls).send()
    assert (len(stored(calls)), calls.left_out) == (1, [])


def test_a_signal_ends_the_attempt(calls: Calls) -> None:
    with pytest.raises(Interrupted):
        sender(calls, is_interrupted=True).send()
    assert calls.left_out is None


def test_what_is_given_up_is_named_without_what_is_stored(calls: Calls) -> None:
    sender(calls).send()
    (calls.train / "two.keras").write_bytes(b"newer")
    sender(calls).give_up(DISK_FULL)
    assert [(item.name, item.size, item.reason) for item in calls.left_out or ()] == [("two.keras", 5, DISK_FULL)]


def test_while_the_program_runs_its_newest_checkpoint_is_sent_when_it_has_changed(calls: Calls) -> None:
    running = while_running(calls)
    running.send()
    assert (stored(calls), calls.left_out) == (set(), None), "no call without a checkpoint"
    for step in (1, 2):
        save(calls, step)
        running.send()
        sent = len(calls.parts)
        running.send()
        assert (stored(calls), len(calls.parts)) == ({f"c-{step}"}, sent)
    while_running(calls).send()
    assert len(calls.parts) == sent, "nor by the next launcher"
    request = UploadRequest(RUN, str(calls.train), ["**/*.keras", "**/checkpoint"])
    ArtifactSender(calls, "worker-0", request, lambda _: False).send()  # type: ignore[arg-type]
    assert stored(calls) == {"c-2", "one.keras", "two.keras"}
    assert len(calls.parts) == sent + 2, "the end sends what is not stored yet"


def test_a_checkpoint_that_is_deleted_while_it_is_sent_is_whole(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow deletes old checkpoints, by default all but five."""
    save(calls, 1)
    json_bytes, steps = calls.json_bytes, iter((2, 3))

    def overtake(method: str, path: str, body: bytes) -> dict[str, Any]:
        for step in steps:
            save(calls, step)
        return json_bytes(method, path, body)

    monkeypatch.setattr(calls, "json_bytes", overtake)
    running = while_running(calls)
    running.send()
    assert not (calls.train / "c-1.index").exists()
    assert stored(calls) == {"c-1"}
    running.send()
    assert stored(calls) == {"c-3"}


def test_of_a_checkpoint_written_again_the_former_one_stays(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    running = while_running(calls)
    save(calls, 1)
    running.send()
    before = {path.name: path.read_bytes() for path in (calls.store._runs / RUN / "artifacts").iterdir()}
    save(calls, 1)
    running.send()
    json_bytes = calls.json_bytes

    def write_again(method: str, path: str, body: bytes) -> dict[str, Any]:
        (calls.train / "draft").write_text("index 2")
        (calls.train / "draft").replace(calls.train / "c-1.index")
        return json_bytes(method, path, body)

    monkeypatch.setattr(calls, "json_bytes", write_again)
    sent = len(calls.parts)
    running.send()
    assert len(calls.parts) > sent
    assert before == {path.name: path.read_bytes() for path in (calls.store._runs / RUN / "artifacts").iterdir()}
    monkeypatch.undo()
    running.send()
    running.send()
    assert (calls.store._runs / RUN / "artifacts/c-1.index").read_text() == "index 2"


def test_a_checkpoint_beyond_the_limits_is_left_out_once(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    running = while_running(calls)
    save(calls, 1)
    running.send()
    monkeypatch.setattr("tfdeploy.agent.launch.artifact_sender.MAX_BYTES", 50)
    save(calls, 2, size=60)
    running.send()
    assert calls.left_out is not None
    assert [(item.name, item.reason) for item in calls.left_out] == [("c-2", LIMIT)]
    assert stored(calls) == {"c-1"}
    calls.left_out = None
    running.send()
    assert calls.left_out is None
