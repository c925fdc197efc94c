"""The size of a terminal: set when a command starts, and again until an engine accepts it."""

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from tfdeploy.backends import terminal as own_terminal
from tfdeploy.backends.terminal import CommandStream


class StartingCommand:
    """A command that starts after some attempts."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.sizes: list[Any] = []

    def resize(self, *size: int) -> bool:
        self.sizes.append(size)
        return len(self.sizes) > self.refusals


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 41 rows and 97 columns; the environment has other numbers."""
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((97, 41)))


@pytest.mark.parametrize("refusals", [0, 3])
def test_the_size_is_set_until_the_engine_accepts_it(refusals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_terminal, "_RESIZE_PAUSE", 0.0)
    command = StartingCommand(refusals)
    own_terminal._resize(cast(CommandStream, command), threading.Lock())
    assert command.sizes == [(41, 97)] * (refusals + 1)


SCRIPT = """
import pathlib, sys
from tfdeploy.agent.launch.exec import exec_command
exec_command(pathlib.Path(sys.argv[1]), sys.argv[2:])
"""


def test_a_command_starts_with_the_size_of_the_terminal(tmp_path: Path) -> None:
    size_env = own_terminal.terminal_size_env()
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), "sh", "-c", "stty size; env"]
    env = {"PATH": os.environ["PATH"], **size_env}
    controlling, terminal = pty.openpty()
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, env=env, check=True)
    for descriptor in (controlling, terminal):
        os.close(descriptor)
    size, *variables = done.stdout.splitlines()
    assert size == "41 97"
    assert size_env.keys().isdisjoint(line.partition("=")[0] for line in variables)
