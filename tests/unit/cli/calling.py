"""The `tfdeploy` command, called in this process."""

import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cases import plan, spec
from tfdeploy import registry
from tfdeploy.backends.base import ClusterRef
from tfdeploy.cli import main
from tfdeploy.report.expected_state import ExpectedState, expected_state


@dataclass(frozen=True)
class Result:
    """What a call came to."""

    exit_code: int
    stdout_bytes: bytes
    stderr: str
    exception: Exception | None

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode()


class _Stream(io.TextIOWrapper):
    """Standard output or error, which is no terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def content(self) -> bytes:
        self.flush()
        return bytes(self.buffer.getvalue())  # type: ignore[attr-defined]


def invoke(words: Sequence[str], command: Callable[[Sequence[str]], None] = main.call) -> Result:
    """Call the command with these words and without an input; an error is no exit here."""
    out, err = _Stream(), _Stream()
    code, exception = 0, None
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO())
        try:
            command(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        except Exception as error:
            code, exception = 1, error
    return Result(code, out.content(), err.content().decode(), exception)


def call(words: Sequence[str]) -> Result:
    """The same; an error is raised."""
    done = invoke(words)
    if done.exception:
        raise done.exception
    return done


def said(*words: str) -> tuple[str, str]:
    """The result and the messages of a command that does not fail."""
    done = invoke(words)
    assert done.exit_code == 0, done.exception
    return done.stdout, done.stderr


def registered(cluster: ClusterRef, asked: dict[str, Any] | None = None, **about: Any) -> registry.Entry:
    """Have the registry know a cluster, with what is expected of one with these arguments."""
    expected = expected_state(plan(**asked), spec(**asked)) if asked else ExpectedState(tasks=())
    entry = registry.Entry(cluster, "/program", expected, **about)
    registry.write(entry)
    return entry


def program(folder: Path, patch: pytest.MonkeyPatch, login: str = "file:///mine") -> Path:
    """The folder of the program p, in which this process is, and of all state."""
    patch.setenv("XDG_STATE_HOME", str(folder))
    patch.setenv("PULUMI_BACKEND_URL", login)
    (folder / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    patch.chdir(folder)
    return folder
