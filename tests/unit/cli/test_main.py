"""The command as a whole: its groups, the names of its verbs, and which options each has."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from itertools import pairwise
from operator import attrgetter
from typing import Any

import pytest
from typer import rich_utils
from typer.main import get_command
from typer.testing import CliRunner

from tfdeploy.cli.command_table import GROUPS, Verb, listed_names
from tfdeploy.cli.exit_codes import EXIT_WORDS
from tfdeploy.cli.typer_app import app
from tfdeploy.errors import BackendError
from tfdeploy.paths import make_private, state_folder

NO_JSON = ("exec", "import-tfjob")
QUESTIONS = ("restart", "stop", "ls")
"""The verbs that ask before they act."""


def verbs() -> dict[str, Any]:
    command: Any = get_command(app)
    found: dict[str, Any] = command.commands
    return found


def options(verb: str) -> set[str]:
    return {name for parameter in verbs()[verb].params for name in parameter.opts}


@pytest.mark.parametrize(
    "encoding", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_an_ascii_terminal_gets_replacements(encoding: dict[str, str]) -> None:
    texts = 'sys.argv = ["x", "options"]; exit_with(lambda _: print("gr\\xf6\\xdfe \\u2026"), "x"); main()'
    script = f"import sys; from tfdeploy.cli.main import exit_with, main; {texts}"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **encoding}, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"gr??e ?\n")
    assert done.stdout.isascii()
    assert b"workers" in done.stdout


def test_the_version_is_the_distributions() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"tfdeploy {version('pulumi-tfdeploy')}\n")


@pytest.mark.parametrize(
    "verb", [verb for verbs_of_group in GROUPS.values() for verb in verbs_of_group], ids=attrgetter("name")
)
def test_the_list_of_commands_has_the_first_line_of_each_help(verb: Verb) -> None:
    assert str(verbs()[verb.name].help).split("\n")[0] == verb.summary


def test_each_verb_is_in_one_group_of_the_help() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output
    places = [shown.index(f"\n{group} ") for group in GROUPS]
    assert places == sorted(places)
    assert re.findall(r"^(?:\w+)? {2,}(\w\S*)  ", shown, re.MULTILINE) == listed_names()
    assert len(listed_names()) <= 18


def test_the_list_of_commands_fits_a_terminal_of_80_columns_and_24_lines() -> None:
    texts = [
        CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}).output for arguments in ([], ["--help"], ["help"])
    ]
    assert texts[0].strip() == texts[1].strip() == texts[2].strip()
    lines = texts[1].rstrip().splitlines()
    assert len(lines) <= 23, "the prompt is in the last line"
    assert max(map(len, lines)) <= 80
    assert all(f"{code} {word}" in " ".join(texts[1].split()) for code, word in EXIT_WORDS.items())


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_the_help_of_a_command_is_wrapped_once(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", int(width))  # read from the environment when it is imported
    env = {"COLUMNS": width, "NO_COLOR": "1", "TERM": "dumb"}
    for name in verbs():
        shown = CliRunner().invoke(app, [name, "--help"], env=env).output.splitlines()
        prose = [line.rstrip() for line in shown[: next(n for n, line in enumerate(shown) if line.startswith("╭"))]]
        assert max(map(len, prose)) <= int(width)
        for line, following in pairwise(prose[2:]):
            if line.strip() and following.strip():
                first = following.split()[0]
                assert len(line) + 1 + len(first) >= int(width) - 1, (name, line, following)


@pytest.mark.parametrize("alias", ["ps", "show"])
def test_status_has_the_names_that_people_type(alias: str) -> None:
    assert [verbs()[name].help for name in (alias, "status")] == [verbs()["status"].help] * 2
    assert options(alias) == options("status")
    assert verbs()[alias].hidden


def test_json_is_where_it_has_a_meaning_and_refused_elsewhere() -> None:
    without = {verb for verb in verbs() if "--json" not in options(verb)}
    assert without == set(NO_JSON)
    for verb in NO_JSON:
        assert CliRunner().invoke(app, [verb, "--json", "worker-0", "--", "ls"]).exit_code == 2


def test_who_asks_takes_yes() -> None:
    assert {verb for verb in verbs() if "--yes" in options(verb)} == set(QUESTIONS)


def test_a_letter_has_one_meaning() -> None:
    meanings: dict[str, set[str]] = {}
    for command in verbs().values():
        for parameter in command.params:
            for name in parameter.opts:
                if len(name) == 2:
                    meanings.setdefault(name, set()).add(next(opt for opt in parameter.opts if opt.startswith("--")))
    assert {letter: names for letter, names in meanings.items() if len(names) > 1} == {}


def test_options_that_would_do_nothing_are_refused() -> None:
    assert not {"--cwd", "--stack", "--cluster"} & options("options")
    assert "--cwd" not in options("ls")
    assert "--cluster" not in options("doctor")


@pytest.mark.parametrize("home", ["/proc/nobody", "/dev/null/nobody"])
def test_a_home_that_cannot_be_created_is_named(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with pytest.raises(BackendError, match=f"{home}/.local/state/tfdeploy cannot be created: N.* Set HOME"):
        make_private(state_folder() / "run")
