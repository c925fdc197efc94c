"""The completion of commands, which does without Typer, is the same as Typer's."""

import pytest

from tfdeploy.cli.command_table import completed_names
from tfdeploy.cli.typer_app import app, call


@pytest.mark.parametrize("words", ["tfdeploy", "tfdeploy s", "tfdeploy import-", "tfdeploy logs", "tfdeploy zz"])
def test_commands_are_completed_as_typer_does(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"COMP_WORDS": words, "COMP_CWORD": "1"}
    for name, value in {**environment, "_TFDEPLOY_COMPLETE": "complete_bash"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        call(app, "tfdeploy", [])
    assert completed_names(environment) == capsys.readouterr().out.split()


@pytest.mark.parametrize(("words", "place"), [("tfdeploy --", "1"), ("tfdeploy logs w", "2"), ("", "")])
def test_other_words_are_left_to_typer(words: str, place: str) -> None:
    assert completed_names({"COMP_WORDS": words, "COMP_CWORD": place}) is None
