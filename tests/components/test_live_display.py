"""The terminal of Pulumi, read from its process: here a shell of that name with a Python program below it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verbs import Terminal

LOOK = "from tfdeploy.report.live_display import LiveDisplay; print('columns', LiveDisplay().columns)"
SCRIPT = '"$0" -c "$1"; exit $?'
"""A shell that remains while the program runs, as Pulumi does."""

PLAIN = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "PYTHONPATH": str(Path(__file__).parent.parent.parent)}


def pulumi(*options: str, name: str = "pulumi") -> list[str]:
    """A command that appears as Pulumi, with these options, in the list of processes."""
    return ["bash", "-c", 'exec -a "$0" bash -c "$@"', name, SCRIPT, sys.executable, LOOK, *options]


def shown(tmp_path: Path, command: list[str], **env: str) -> str:
    """What the program says that runs below this command in a terminal."""
    terminal = Terminal(command, tmp_path, {**PLAIN, **env}, (45, 160))
    assert terminal.end() == 0, terminal.said
    return terminal.said.strip()


NOT_REDRAWN: dict[str, dict[str, Any]] = {
    "its option": {"command": pulumi("up", "--non-interactive")},
    "the display of differences": {"command": pulumi("up", "--diff=true")},
    "its variable": {"command": pulumi("up"), "PULUMI_OPTION_NON_INTERACTIVE": "true"},
    "CI": {"command": pulumi("up"), "GITHUB_ACTIONS": "true"},
    "a terminal without cursor": {"command": pulumi("up"), "TERM": "dumb"},
    "no Pulumi": {"command": pulumi(name="pulumi-language-python")},
}


@pytest.mark.parametrize("case", NOT_REDRAWN)
def test_there_is_none_where_pulumi_prints_lines(tmp_path: Path, case: str) -> None:
    assert shown(tmp_path, **NOT_REDRAWN[case]) == "columns 0"


def test_there_is_none_in_a_pipe(tmp_path: Path) -> None:
    command = pulumi("up")
    done = subprocess.run(
        command, env=PLAIN, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert done.stdout == "columns 0\n", done.stderr
    to_file = ["bash", "-c", '"$@" > out; cat out', "bash", *command]
    assert shown(tmp_path, to_file) == "columns 0"
