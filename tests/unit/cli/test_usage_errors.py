"""Wrong usage is one line in the one style of all errors; and what users of other systems type has an answer."""

import sys
from pathlib import Path

import pytest

from tfdeploy.cli import main, tfrun
from tfdeploy.cli.cluster_selection import ClusterQuery
from tfdeploy.cli.command_table import HABITS, VERBS
from tfdeploy.cli.commands import run as run_command
from tfdeploy.cli.commands import status


def refused(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The error of a command, which is one line and exits with 2."""
    monkeypatch.setattr(sys, "argv", words.split())
    program = tfrun.main if words.startswith("tfrun") else main.main
    with pytest.raises(SystemExit) as ended:
        program()
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"{words.split()[0]}: ")
    return err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("tfdeploy restart", ["HOSTNAME is missing", "--lost"]),
        ("tfdeploy exec worker-0", ["no command after worker-0"]),
        ("tfdeploy logs --tail x", ["--tail/-n: 'x' is not a whole number", "`tfdeploy logs --help`"]),
        ("tfdeploy logs --tail", ["--tail/-n: expected one argument"]),
        ("tfdeploy report --port 99999", ["--port: '99999' must be at most 65535"]),
        ("tfdeploy status -o bad", ["--output/-o: invalid choice: 'bad'", "wide"]),
        ("tfdeploy status --colour", ["--colour is not an option of `tfdeploy status`", "Did you mean --cluster?"]),
        ("tfdeploy status extra", ["extra is not expected here. Use: tfdeploy status [OPTIONS]"]),
        ("tfdeploy logs --follow --previous", ["--follow shows the current run"]),
        ("tfdeploy port-forward a b 80", ["has ports of 2 tasks"]),
        ("tfdeploy ls --delete", ["is for --leftovers", "pulumi destroy"]),
        ("tfdeploy restart --lost --without-data", ["restores all that is lost of a stack"]),
        ("tfdeploy statsu", ["there is no command 'statsu'", "Did you mean status"]),
        ("tfrun -w x -- a", ["--workers/-w/--nworker: 'x' is not a whole number"]),
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
    assert habit not in [verb.name for verb in VERBS]


@pytest.mark.parametrize(
    ("words", "query", "arguments"),
    [
        ("--cwd x status", ClusterQuery(Path("x")), {"watch": False}),
        ("-o wide status -s org/p/dev", ClusterQuery(stack="org/p/dev", wide=True), {"watch": False}),
        ("status -o json -c mnist", ClusterQuery(cluster="mnist", as_json=True), {"watch": False}),
    ],
)
def test_options_before_the_command_are_those_of_the_command(
    words: str, query: ClusterQuery, arguments: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    monkeypatch.setenv("TFDEPLOY_DEBUG", "")
    monkeypatch.setattr(status, "status", lambda *positional, **named: calls.extend([*positional, named]))
    main.call(words.split())
    assert calls == [query, arguments]


@pytest.mark.parametrize("options", ["", "--workers 2 ", "--set a=b "])
def test_what_follows_two_dashes_is_the_command_of_run(options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, object]] = []
    monkeypatch.setattr(run_command, "run", lambda options: calls.append({**vars(options)}))
    main.call(f"run {options}-- python train.py -- --workers 3 --debug".split())
    assert calls[0]["command"] == "-- python train.py -- --workers 3 --debug".split()  # noqa: SIM905
