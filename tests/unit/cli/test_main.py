"""The command as a whole: its groups, the names of its verbs, and which options each has."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from itertools import pairwise
from operator import attrgetter

import pytest

from tests.unit.cli.calling import invoke
from tfdeploy.cli.command_table import BY_NAME, EXIT_CODES, VERBS, Verb
from tfdeploy.cli.parser import command_parser
from tfdeploy.errors import BackendError, UsageError
from tfdeploy.paths import make_private, state_folder

NO_JSON = ("exec", "import-tfjob")


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
    done = invoke(["--version"])
    assert (done.exit_code, done.stdout) == (0, f"tfdeploy {version('pulumi-tfdeploy')}\n")


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


def test_the_list_of_commands_loads_no_parser() -> None:
    script = "import sys; from tfdeploy.cli.main import call; call(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True)
    assert {"argparse", "pathlib", "tfdeploy.errors"} & {*done.stdout.split()} == set()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_help_of_a_command_is_wrapped_once(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for name in BY_NAME:
        help_text = command_parser(BY_NAME[name], name)[0].format_help()
        prose = re.split(r"\n(?:positional arguments|options):\n", help_text)[0].splitlines()[1:]
        assert max(map(len, prose)) <= width - 2
        for line, following in pairwise(prose):
            if line.strip() and following.strip():
                assert len(line) + 1 + len(following.split()[0]) >= width - 2, (name, line, following)


def test_json_is_where_it_has_a_meaning_and_refused_elsewhere() -> None:
    for verb in NO_JSON:
        for words in ([verb, "--json", "worker-0", "--", "ls"], ["--json", verb, "worker-0", "--", "ls"]):
            done = invoke(words)
            assert isinstance(done.exception, UsageError)
            assert str(done.exception).startswith(f"--json is not an option of `tfdeploy {verb}`.")


def test_a_letter_has_one_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    meanings: dict[str, set[str]] = {}
    for verb in VERBS:
        help_text = command_parser(verb, verb.name)[0].format_help()
        for name, letter in re.findall(r"(?m)^  (--[\w-]+)(?: \S+)?, (-\w)\b", help_text):
            meanings.setdefault(letter, set()).add(name)
    assert len(meanings) > 10
    assert {letter: names for letter, names in meanings.items() if len(names) > 1} == {}


@pytest.mark.parametrize("home", ["/proc/nobody", "/dev/null/nobody"])
def test_a_home_that_cannot_be_created_is_named(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with pytest.raises(BackendError, match=f"{home}/.local/state/tfdeploy cannot be created: N.* Set HOME"):
        make_private(state_folder() / "run")
