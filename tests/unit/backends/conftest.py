"""What the tests of the backends share: a state folder of the test's own, and a clock that only waiting turns."""

import time
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of the test, which does not exist yet and has a space in its name."""
    folder = tmp_path / "my state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


class Clock:
    """The time, which only waiting moves: by a second at least."""

    def __init__(self) -> None:
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(time, "sleep", made.sleep)
    return made
