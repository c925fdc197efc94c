"""The size of a terminal: given to a command with its start, and told to an engine that does not take it at once."""

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
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


@pytest.fixture(autouse=True)
def window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of 41 rows and 97 columns, whatever the environment says of it."""
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(os, "get_terminal_size", lambda place: os.terminal_size((97, 41)))


@pytest.mark.parametrize("tries", [0, 3])
def test_the_size_is_told_until_the_engine_takes_it(tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PAUSE", 0.0)
    busy = Busy(tries)
    terminal._size(cast(Stream, busy), threading.Lock())
    assert busy.asked == [(41, 97)] * (tries + 1)


ENTERS = "import pathlib, sys; from tfdeploy.agent.enter import enter; enter(pathlib.Path(sys.argv[1]), sys.argv[2:])"


def test_a_command_begins_with_the_size_whatever_the_engine_does(tmp_path: Path) -> None:
    given = terminal.size()
    command = [sys.executable, "-c", ENTERS, str(tmp_path), "sh", "-c", "stty size; env"]
    env = {"PATH": os.environ["PATH"], **given}
    near, far = pty.openpty()
    done = subprocess.run(command, stdin=far, capture_output=True, text=True, env=env, check=True)
    for end in (near, far):
        os.close(end)
    size, *variables = done.stdout.splitlines()
    assert size == "41 97"
    assert given.keys().isdisjoint(line.partition("=")[0] for line in variables)
