"""The command as a whole: its groups, the names of its verbs, and which options each has."""

import os
import subprocess
import sys
from operator import attrgetter

import pytest

from tests.unit.cli.calling import invoke
from tfdeploy.cli.command_table import EXIT_CODES, VERBS, Verb
from tfdeploy.cli.parser import command_parser
from tfdeploy.errors import BackendError, UsageError
from tfdeploy.paths import make_private, state_folder


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


@pytest.mark.parametrize("verb", VERBS, ids=attrgetter("name"))
def test_the_list_of_commands_has_the_first_line_of_each_help(verb: Verb) -> None:
    assert str(command_parser(verb, verb.name)[1].__doc__).splitlines()[0] == verb.summary


def test_the_list_of_commands_fits_a_terminal_of_80_columns_and_24_lines() -> None:
    texts = [invoke(arguments).stdout for arguments in ([], ["--help"], ["help"])]
    assert texts[0].strip() == texts[1].strip() == texts[2].strip()
    lines = texts[1].rstrip().splitlines()
    assert len(lines) <= 23, "the prompt is in the last line"
    assert max(map(len, lines)) <= 80
    assert all(f"{code} {word}" in " ".join(texts[1].split()) for code, (word, _) in EXIT_CODES.items())


def test_json_is_where_it_has_a_meaning_and_refused_elsewhere() -> None:
    for verb in ("exec", "import-tfjob"):
        for words in ([verb, "--json", "worker-0", "--", "ls"], ["--json", verb, "worker-0", "--", "ls"]):
            done = invoke(words)
            assert isinstance(done.exception, UsageError)
            assert str(done.exception).startswith(f"--json is not an option of `tfdeploy {verb}`.")


@pytest.mark.parametrize("home", ["/proc/nobody", "/dev/null/nobody"])
def test_a_home_that_cannot_be_created_is_named(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with pytest.raises(BackendError, match=f"{home}/.local/state/tfdeploy cannot be created: N.* Set HOME"):
        make_private(state_folder() / "run")
