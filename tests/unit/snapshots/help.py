"""`--help` of every command, at a fixed width. An option that an earlier command has in the same words is there without them."""

import re

import typer
from typer.main import get_command
from typer.testing import CliRunner

from tests.unit.snapshots import section
from tfdeploy.cli.typer_app import app

_WIDTH = "100"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_OPTION = re.compile(r"│ --\S+ .*\n(?:│ {8,}\S.*\n)*")


def help_texts() -> str:
    """The whole surface."""
    command, known = get_command(app), set[str]()
    assert isinstance(command, typer.core.TyperGroup)
    return "\n".join(
        section(" ".join(["tfdeploy", *words]), [_shortened(_help(*words), known)])
        for words in [[], *([name] for name, verb in command.commands.items() if not verb.hidden)]
    )


def _help(*words: str) -> str:
    env = {"COLUMNS": _WIDTH, "TERMINAL_WIDTH": _WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    output = CliRunner().invoke(app, [*words, "--help"], env=env).output
    return _STYLES.sub("", output).strip("\n")


def _shortened(text: str, known: set[str]) -> str:
    """The help in which the options that are known have no description."""
    repeated = []

    def shown(row: re.Match[str]) -> str:
        words = " ".join(row[0].replace("│", "").split())
        if words in known:
            repeated.append(f"{words.partition('>')[0]}>")
            return ""
        known.add(words)
        return row[0]

    text = _OPTION.sub(shown, text)
    return f"{text}\n  As above: {', '.join(repeated)}" if repeated else text
