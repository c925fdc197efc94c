"""An agent of another version behind the calls: understood where that is possible, else a sentence."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.simulation import World
from tfdeploy.agent.wire.rpc import CallError
from tfdeploy.backends import controller_calls
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError


class OlderController:
    """It responds as an agent of an earlier or a later version does."""

    def __init__(self, **responses: Any) -> None:
        self.responses = responses
        self.called: list[str] = []

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        return json.dumps(self.json(method, path)).encode()

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self.called.append(f"{method} {path}")
        response = self.responses.get(path.strip("/"))
        if response is None:
            raise CallError(f"{method} {path}: 404 unknown call")
        return dict(json.loads(json.dumps(response)))


def running() -> World:
    job = World(ps=1, workers=1)
    job.come()
    return job


def test_a_stop_waits_for_uploads_but_not_for_the_task_of_a_lost_machine_after_them() -> None:
    answers = [{"stopped": False, "uploading": True}, {"stopped": False, "uploading": True}, {"stopped": False}]
    asked: list[str] = []

    class Controller(OlderController):
        def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
            asked.append(path)
            return answers.pop(0) if path == "/stopped" else {}

    assert not controller_calls.stop(Controller(), lambda: False, 0.0)
    assert asked == ["/stop", "/stopped", "/stopped", "/stopped"]


CLUSTER = ClusterRef(backend="docker", project="p", stack="s", name="older", home="", id="abcdefghij", owner="somebody")


def test_a_copy_that_is_not_understood_keeps_what_is_there_and_destroy_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    record_copy = RecordCopy(CLUSTER)
    record_copy.record.save(running().job)
    garbage = OlderController(files={"protocol": 9})
    with pytest.raises(CallError, match="another version of tfdeploy"):
        record_copy.update(garbage)
    record_copy.download(garbage)
    run = record_copy.record.current()
    assert run is not None


class Stopping(OlderController):
    """A controller whose run does not stop."""

    def __init__(self, unfinished: dict[str, Any] | None, uploading: bool = False) -> None:
        super().__init__(stop={}, stopped={"stopped": False, "uploading": uploading})
        if unfinished is not None:
            self.responses["unfinished"] = unfinished


FULL = {"waits_for": [], "problem": "No space left on device"}


@pytest.mark.parametrize(
    ("unfinished", "uploading", "text"),
    [
        (None, False, "waiting until the tasks have stopped, for at most 7 s"),
        ({"waits_for": ["ps-0"], "problem": ""}, False, "waiting until ps-0 has stopped, for at most 7 s"),
        (
            {"waits_for": [f"worker-{index}" for index in range(9)], "problem": ""},
            True,
            "waiting until worker-0, worker-1, worker-2, worker-3, worker-4 and 4 more have stopped, for at most 907 s",
        ),
        (
            {"waits_for": ["ps-0", "worker-0"], "problem": "No space left on device"},
            False,
            "waiting until ps-0, worker-0 have stopped (the record cannot be written: No space left on device), for at most 7 s",
        ),
        (
            FULL,
            True,
            (
                "waiting until the artifacts of the run are in its record (the record cannot be written: No space left on device), "
                "for at most 127 s"
            ),
        ),
    ],
)
def test_a_long_stop_prints_once_what_it_waits_for_and_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    unfinished: dict[str, Any] | None,
    uploading: bool,
    text: str,
) -> None:
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += 1.0

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "sleep", pause)
    assert not controller_calls.stop(Stopping(unfinished, uploading), lambda: False, 12.0)
    assert capsys.readouterr().out == text + "\n"


def test_a_stop_ends_with_a_signal_to_pulumi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_calls, "is_cancelled", lambda: True)
    with pytest.raises(BackendError, match="a signal has ended the wait for the tasks"):
        controller_calls.stop(Stopping(None), lambda: False, 1e9)
    assert controller_calls.stop(OlderController(stop={}, stopped={"stopped": True}), lambda: False, 1e9)
