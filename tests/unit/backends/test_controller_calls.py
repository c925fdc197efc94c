"""A controller that does not do what it shall: the wait for the end of a run, and a response that is not understood."""

import json
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.backends.conftest import Clock
from tests.unit.simulation import World
from tfdeploy.agent.wire.rpc import CallError
from tfdeploy.backends import controller_calls
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.errors import BackendError


class Controller:
    """It has these responses: one, or one after the other."""

    def __init__(self, **responses: Any) -> None:
        self.responses = responses
        self.called: list[str] = []

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        return json.dumps(self.json(method, path)).encode()

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self.called.append(path)
        response = self.responses.get(path.strip("/"))
        if response is None:
            raise CallError(f"{method} {path}: 404 unknown call")
        return dict(response.pop(0) if isinstance(response, list) else response)


def test_a_stop_waits_for_uploads_but_not_for_the_task_of_a_lost_machine_after_them() -> None:
    uploading = {"stopped": False, "uploading": True}
    controller = Controller(stop={}, stopped=[uploading, uploading, {"stopped": False}])
    assert not controller_calls.stop(controller, lambda: False, 0.0)
    assert controller.called == ["/stop", "/stopped", "/stopped", "/stopped"]


def test_a_copy_that_is_not_understood_keeps_what_is_there_and_destroy_goes_on() -> None:
    record_copy = RecordCopy(cluster_ref())
    record_copy.record.save(World(ps=1, workers=1).job)
    garbage = Controller(files={"protocol": 9})
    with pytest.raises(CallError, match="another version of tfdeploy"):
        record_copy.update(garbage)
    record_copy.download(garbage)
    assert record_copy.record.current() is not None


FULL = "No space left on device"
UNWRITTEN = f"(the record cannot be written: {FULL}), for at most "


@pytest.mark.parametrize(
    ("unfinished", "uploading", "text"),
    [
        (None, False, "the tasks have stopped, for at most 7 s"),
        ({"waits_for": ["ps-0"], "problem": ""}, False, "ps-0 has stopped, for at most 7 s"),
        (
            {"waits_for": [f"worker-{index}" for index in range(9)], "problem": ""},
            True,
            "worker-0, worker-1, worker-2, worker-3, worker-4 and 4 more have stopped, for at most 907 s",
        ),
        ({"waits_for": ["ps-0", "worker-0"], "problem": FULL}, False, f"ps-0, worker-0 have stopped {UNWRITTEN}7 s"),
        ({"waits_for": [], "problem": FULL}, True, f"the artifacts of the run are in its record {UNWRITTEN}127 s"),
    ],
)
def test_a_long_stop_prints_once_what_it_waits_for_and_has_a_limit(
    clock: Clock, capsys: pytest.CaptureFixture[str], unfinished: dict[str, Any] | None, uploading: bool, text: str
) -> None:
    controller = Controller(stop={}, stopped={"stopped": False, "uploading": uploading}, unfinished=unfinished)
    assert not controller_calls.stop(controller, lambda: False, 12.0)
    assert capsys.readouterr().out == f"waiting until {text}\n"


def test_a_stop_ends_with_a_signal_to_pulumi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_calls, "is_cancelled", lambda: True)
    with pytest.raises(BackendError, match="a signal has ended the wait for the tasks"):
        controller_calls.stop(Controller(stop={}, stopped={"stopped": False}), lambda: False, 1e9)
    assert controller_calls.stop(Controller(stop={}, stopped={"stopped": True}), lambda: False, 1e9)
