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

from tests.unit.cli.calling import call
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.cli.command_table import TIMED_OUT, UNREACHABLE
from tfdeploy.cli.commands import run as command
from tfdeploy.cli.run import session, stack
from tfdeploy.cli.run.session import Session
from tfdeploy.cli.run.stack import Call
from tfdeploy.cli.run.terminal import Terminal
from tfdeploy.cli.snapshot import LogLine
from tfdeploy.errors import BackendError, CommandError, SpecError


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tfdeploy.cli.run.terminal.runtime_root", lambda: tmp_path / "r")


class Pulumi:
    """An engine whose `destroy` fails, where nobody can be reached."""

    did: list[str]

    def __init__(self, *_: Any) -> None:
        type(self).did = []

    def up(self) -> None:
        self.did.append("up")

    def destroy(self) -> None:
        self.did.append("destroy")

    def wait(self, _seconds: float) -> bool:
        return True

    def check(self, what: str) -> None:
        if "destroy" in what:
            raise CommandError(what, 255, ["nobody answers"])


class Lost:
    """A follower of what has gone."""

    def __init__(self, *_: Any) -> None:
        self.snapshot = SimpleNamespace(
            entry=SimpleNamespace(ended=0.0),
            observed=SimpleNamespace(engine=None, controller_silent_since=1.0),
            report=SimpleNamespace(decided=False, tasks=[]),
            is_finished=False,
        )

    def take_snapshot(self) -> Any:
        return self.snapshot

    def lines(self) -> list[LogLine]:
        return []

    unfinished_lines = lines


def test_a_lost_cluster_ends_the_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(session, "PulumiEngine", Pulumi)
    monkeypatch.setattr(session, "Follower", Lost)
    monkeypatch.setattr(session, "_LOST_SECONDS", 0.0)
    monkeypatch.setattr(Call, "entry", None)
    outcome = Session(Call("run-1", keep=True), print, 30.0, verbose=False).run()
    assert outcome.code == UNREACHABLE
    assert Pulumi.did == ["up", "destroy"]
    told = capsys.readouterr().err
    assert "no response from the cluster" in told
    assert "tfdeploy run --remove run-1" in told


@pytest.mark.parametrize(
    ("terminal", "shown"), [(True, "worker-0 | caf\xe9 ?\n"), (False, "worker-0 | \x1b]0;title\x07caf\xe9 ?\n")]
)
def test_a_line_harms_neither_terminal_nor_call(terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", errors="replace", write_through=True)
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    command.line_printer(as_json=False, hidden="")(LogLine(0.0, "worker-0", "stdout", "\x1b]0;title\x07café ✓"))
    assert screen.buffer.getvalue() == shown.encode("latin-1")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    terminal = Terminal(tmp_path)
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
    with pytest.raises(SpecError, match="--name"):
        call(["run", "--name=mine", "--here", f"--code={tmp_path}", "--", "python", "-V"])
    assert list((tmp_path / "r").iterdir()) == []


def test_a_refusal_of_the_component_is_an_error_with_its_words() -> None:
    call = Call("run-1")
    call.folder.mkdir(parents=True)
    call.file(stack.REFUSAL).write_text(json.dumps(["the engine does not respond"]))
    engine = stack.PulumiEngine(call, verbose=False)
    engine._process = SimpleNamespace(returncode=255)  # type: ignore[assignment]
    with pytest.raises(BackendError, match="the engine does not respond"):
        engine.check("`pulumi up`")


class Working(Pulumi):
    """An engine whose `destroy` succeeds."""

    def check(self, what: str) -> None:
        pass


@pytest.mark.parametrize(
    ("result", "keep", "actions", "code"),
    [
        ("", False, ["up", "destroy"], TIMED_OUT),
        ("stopped", False, ["up", "destroy"], TIMED_OUT),
        ("succeeded", False, ["up", "destroy"], 0),  # and other workers had time left to end by themselves
        ("", True, ["up"], TIMED_OUT),
    ],
)
def test_a_session_ends_with_its_time_limit(
    result: str, keep: bool, actions: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Follower(Lost):
        def __init__(self, *_: Any) -> None:
            super().__init__()
            state = RunResult(result, "", 1.0) if result else None
            self.snapshot.run_state = RunState(RunSpec("0123", [], {}), 1.0, result=state)

    monkeypatch.setattr(session, "PulumiEngine", Working)
    monkeypatch.setattr(session, "Follower", Follower)
    monkeypatch.setattr(Call, "entry", SimpleNamespace(ended=1.0, cluster={"backend": "local"}))
    stopped: list[float] = []
    access = SimpleNamespace(stop_training=lambda _, seconds: stopped.append(seconds))
    monkeypatch.setattr(session, "access", lambda _: access)
    outcome = Session(Call("run-1", keep=keep), print, -1.0, verbose=False).run()
    assert (outcome.code, Working.did) == (code, actions)
    assert stopped == ([] if keep else [-1.0]), "the run that exceeds its time limit"
