"""The size of a terminal, told to an engine that does not take it at once."""

import threading
from typing import Any, cast

import pytest

from tfdeploy.backends.docker import terminal
from tfdeploy.backends.docker.streams import Stream


class Busy:
    """A command that has started after so many tries."""

    def __init__(self, tries: int) -> None:
        self.tries = tries
        self.asked: list[Any] = []

    def resize(self, *size: int) -> bool:
        self.asked.append(size)
        return len(self.asked) > self.tries


@pytest.mark.parametrize("tries", [0, 3])
def test_the_size_is_told_until_the_engine_takes_it(tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PAUSE", 0.0)
    monkeypatch.setenv("LINES", "41")
    monkeypatch.setenv("COLUMNS", "97")
    busy = Busy(tries)
    terminal._size(cast(Stream, busy), threading.Lock())
    assert busy.asked == [(41, 97)] * (tries + 1)
