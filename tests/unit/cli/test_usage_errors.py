"""Wrong usage is one line in our words, in the one style of all errors; and what users of other systems type has an answer."""

import sys

import pytest

from tfdeploy.cli import main, tfrun
from tfdeploy.cli.command_table import listed_names
from tfdeploy.cli.usage_errors import HABITS, arguments_in_order

LIBRARY = (
    "Input should",
    "Value error",
    "valid integer",
    "Invalid value",
    "Missing argument",
    "╭",
    "range",
    "unexpected",
)
"""Words of the libraries that read the options."""


def refused(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The error of a command, which is one line and exits with 2."""
    monkeypatch.setattr(sys, "argv", words.split())
    program = tfrun.main if words.startswith("tfrun") else main.main
    with pytest.raises(SystemExit) as ended:
        program()
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1), err
    assert not [word for word in LIBRARY if word in err], err
    assert err.startswith(f"{words.split()[0]}: ")
    return err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("tfdeploy restart", ["HOSTNAME is missing", "--lost"]),
        ("tfdeploy exec", ["HOSTNAME is missing", "tfdeploy exec [OPTIONS] hostname"]),
        ("tfdeploy exec worker-0", ["no command after worker-0"]),
        ("tfdeploy cp worker-0:x", ["DEST is missing"]),
        ("tfdeploy logs --tail x", ["--tail: 'x' is not a whole number", "`tfdeploy logs --help`"]),
        ("tfdeploy logs --tail -1", ["--tail: '-1' must be at least 0"]),
        ("tfdeploy logs --tail", ["--tail needs a value"]),
        ("tfdeploy report --port 99999", ["--port: '99999' must be at most 65535"]),
        ("tfdeploy run --worker-cpus x -- a", ["--worker-cpus: 'x' is not a number"]),
        ("tfdeploy status -o bad", ["--output: 'bad' is not one of 'wide', 'json'"]),
        ("tfdeploy status --colour", ["--colour is not an option of `tfdeploy status`", "--cluster"]),
        ("tfdeploy status extra", ["extra is not expected here. Use: tfdeploy status [OPTIONS]"]),
        ("tfdeploy logs --follow --previous", ["--follow shows the current run"]),
        ("tfdeploy port-forward w 1 --port 2", ["--port: is used with ports of a task"]),
        ("tfdeploy port-forward a b 80", ["has ports of 2 tasks"]),
        ("tfdeploy ls --delete", ["is for --leftovers", "pulumi destroy"]),
        ("tfdeploy restart --lost --without-data", ["restores all that is lost of a stack"]),
        ("tfdeploy restart x --dry-run", ["is for --lost"]),
        ("tfdeploy statsu", ["there is no command 'statsu'", "Did you mean status"]),
        ("tfdeploy xyzzy", ["there is no command 'xyzzy'. `tfdeploy help` lists the commands."]),
        ("tfrun -w x -- a", ["--workers: 'x' is not a whole number"]),
    ],
)
def test_wrong_usage_is_one_line_with_what_to_do(
    words: str, parts: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refused(words, capsys, monkeypatch)
    assert [part for part in parts if part not in error] == [], error


@pytest.mark.parametrize("habit", HABITS)
def test_what_users_of_other_systems_type_has_a_hint(
    habit: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refused(f"tfdeploy {habit} mnist", capsys, monkeypatch)
    assert "Did you mean" not in error
    assert "`" in error.partition(". ")[2]
    assert habit not in listed_names()


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("--cwd x status", "status --cwd x"),
        ("--cwd=x --json status -w", "status --cwd=x --json -w"),
        ("-C x -s dev exec worker-0 -- ls -C", "exec -C x -s dev worker-0 -- ls -C"),
        ("--debug -c mnist logs", "--debug logs -c mnist"),
        ("help", "--help"),
        ("help logs", "logs --help"),
        ("version", "--version"),
        ("--version", "--version"),
        ("--cwd", "--cwd"),
        ("--cwd x", "--cwd x"),
        ("status --cwd x", "status --cwd x"),
        ("exec w -- help", "exec w -- help"),
        ("", "--help"),
    ],
)
def test_options_before_the_command_are_those_of_the_command(given: str, called: str) -> None:
    assert arguments_in_order(given.split()) == called.split()
