"""`--help` of every command, at a fixed width."""

import re

import typer
from typer.main import get_command
from typer.testing import CliRunner

from tests.unit.snapshots import section
from tfdeploy.cli.typer_app import app

_WIDTH = "100"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def help_texts() -> str:
    """The whole surface."""
    command = get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    return "\n".join(
        section(" ".join(["tfdeploy", *words]), [_help(*words)])
        for words in [[], *([name] for name, verb in command.commands.items() if not verb.hidden)]
    )


def _help(*words: str) -> str:
    env = {"COLUMNS": _WIDTH, "TERMINAL_WIDTH": _WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    output = CliRunner().invoke(app, [*words, "--help"], env=env).output
    return _STYLES.sub("", output).strip("\n")
