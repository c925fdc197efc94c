"""`run` in the foreground: how it ends, and what it prints."""

import io
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tfdeploy.cli import foreground, here, run
from tfdeploy.cli.asking import UNREACHABLE
from tfdeploy.cli.calls import Call
from tfdeploy.cli.following import Line
from tfdeploy.cli.foreground import Foreground
from tfdeploy.errors import CommandError, SpecError


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(here, "runtime_root", lambda: tmp_path / "r")


class Pulumi:
    """An engine whose `destroy` fails, where nobody can be reached."""

    did: list[str]

    def __init__(self, *_: Any) -> None:
        type(self).did = []

    def start(self, action: str) -> None:
        self.did.append(action)

    def ended(self, _seconds: float) -> bool:
        return True

    def demand(self, what: str) -> None:
        if "destroy" in what:
            raise CommandError(what, 255, ["nobody answers"])


class Lost:
    """A follower of what has gone."""

    def __init__(self, *_: Any) -> None:
        self.seen = SimpleNamespace(
            entry=SimpleNamespace(ended=0.0),
            sight=SimpleNamespace(engine=None, keeper_silent_since=1.0),
            report=SimpleNamespace(decided=False, tasks=[]),
        )

    def look(self) -> Any:
        return self.seen

    def lines(self) -> list[Line]:
        return []

    rest = lines


def test_a_cluster_that_is_lost_ends_the_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(foreground, "Engine", Pulumi)
    monkeypatch.setattr(foreground, "Follower", Lost)
    monkeypatch.setattr(foreground, "_LOST_SECONDS", 0.0)
    monkeypatch.setattr(Call, "entry", None)
    outcome = Foreground(Call("run-1"), print, 30.0, keep=True, shown=False).run()
    assert outcome.code == UNREACHABLE
    assert Pulumi.did == ["up", "destroy"]
    told = capsys.readouterr().err
    assert "it is lost" in told
    assert "tfdeploy run --remove run-1" in told


class Screen(io.TextIOWrapper):
    """A terminal that knows Latin-1."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="latin-1", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode("latin-1")  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("terminal", "shown"),
    [(True, "[worker:0] caf\xe9 \\u2713\n"), (False, "[worker:0] \x1b]0;title\x07caf\xe9 \\u2713\n")],
)
def test_a_line_neither_sets_the_terminal_nor_ends_the_call(
    terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    run.shower(as_json=False, hidden="")(Line(0.0, "worker-0", "stdout", "\x1b]0;title\x07café ✓"))
    assert screen.text == shown


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where a terminal listens."""
    terminal = here.Terminal(tmp_path)
    yield terminal.command([])[-1]
    terminal.close()


def test_a_relay_that_dies_before_it_speaks_leaves_the_terminal_to_the_next(address: str) -> None:
    for words in (b"", b'{"comm'):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.connect(address)
            dead.sendall(words)
    with socket.socket(socket.AF_UNIX) as relay:
        relay.settimeout(30.0)
        relay.connect(address)
        asked = {"command": [sys.executable, "-c", "raise SystemExit(7)"], "env": {}}
        relay.sendall(json.dumps(asked).encode() + b"\n")
        assert relay.makefile().readline() == "7\n"


def test_a_name_that_is_taken_leaves_no_socket(tmp_path: Path) -> None:
    Call("mine").begin().close()
    with pytest.raises(SpecError, match="stands"):
        run.run(["python", "-V"], name="mine", here=True, code=str(tmp_path))
    assert list((tmp_path / "r").iterdir()) == []
