"""A launcher's uploads: how they are tried again, and what the launcher reports of that."""

import os
from contextlib import nullcontext
from typing import Any

import pytest

from tfdeploy.agent.launch import artifact_sender
from tfdeploy.agent.launch import uploads as module
from tfdeploy.agent.launch.uploads import Uploads
from tfdeploy.agent.model.sync import UploadRequest


class Waits:
    """An event that is set after so many waits; their seconds."""

    def __init__(self, count: int) -> None:
        self.count, self.seconds = count, list[float]()

    def wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return len(self.seconds) >= self.count


@pytest.mark.parametrize(("waits", "interval", "connections"), [(9, 0.0, 3), (5, 0.0, 2), (9, 60.0, 3)])
def test_an_upload_that_fails_is_tried_again_after_a_pause_and_its_problem_ends(
    monkeypatch: pytest.MonkeyPatch, waits: int, interval: float, connections: int
) -> None:
    class Sender:
        """One that fails twice."""

        pause, tries, problems = 0.0, 0, list[str]()

        def __init__(self, *_: object) -> None:
            """It sends nothing."""

        def send(self) -> None:
            Sender.tries += 1
            Sender.problems.append(uploads.problem)
            if Sender.tries <= 2:
                raise OSError("it is full")

    monkeypatch.setattr(artifact_sender, "ArtifactSender", Sender)
    monkeypatch.setattr(module, "wake_main_thread", lambda: None)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)
    connected: list[float] = []

    def connect(seconds: float) -> Any:
        connected.append(seconds)
        return nullcontext(object())

    uploads, is_over = Uploads(connect, "worker-0"), Waits(waits)
    uploads._run(UploadRequest("run", "/train", interval=interval), is_over)  # type: ignore[arg-type]
    assert len(connected) == connections
    assert Sender.problems[1] == "cannot upload artifacts: it is full"
    assert [seconds > 0 for seconds in is_over.seconds[:4]] == [False, False, True, False]
    assert Sender.problems[3:] == [""] * (2 if interval else 0), "it ends with the first upload that succeeds"
    assert uploads.problem == ""
