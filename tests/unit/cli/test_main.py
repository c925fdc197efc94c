"""The command as a whole: its groups, the names of its verbs, and which options each has."""

from importlib.metadata import version
from operator import attrgetter
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tfdeploy.cli.main import app
from tfdeploy.cli.verbs import GROUPS, Verb

NO_JSON = ("exec", "iam-policy", "ssh")
QUESTIONS = ("restart", "replace", "stop", "leftovers")
"""The verbs that ask before they act."""


def verbs() -> dict[str, Any]:
    command: Any = get_command(app)
    found: dict[str, Any] = command.commands
    return found


def options(verb: str) -> set[str]:
    return {name for parameter in verbs()[verb].params for name in parameter.opts}


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
    places = [shown.index(f" {group} ") for group in GROUPS]
    assert places == sorted(places)
    assert "Commands" not in shown, "no verb is outside of the groups"
    assert "show" not in shown.split(), "another name of a verb is in that verb's own help"


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
    assert not {"--cwd", "--stack", "--cluster"} & (options("ls") | options("options"))
    assert "--cluster" not in options("doctor") | options("heal")
