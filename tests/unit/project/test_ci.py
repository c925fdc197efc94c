"""`.ci/run` runs `make test` and one half of the other tests, and nothing in its environment weakens them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.plugins.commands import COMMANDS

ROOT = Path(__file__).parents[3]
WEAKEN = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "TFDEPLOY_TESTS_WITHOUT_DOCKER", "RENEW_GOLDENS", "TFDEPLOY_TESTS_RANDOM")
MAKE = """\
#!/bin/sh
echo "make $*" >>"$CALLS"
env | grep -E '^(%s)=' >>"$CALLS"
[ "$*" != "$BROKEN" ]
"""
GIT = """\
#!/bin/sh
[ "$*" = "rev-parse HEAD^{tree}" ] && echo "$TREE"
"""


def ci(folder: Path, tree: str, broken: str = "") -> tuple[int, list[str]]:
    """The exit code of `.ci/run`, and its calls of make, one of which may fail."""
    for name, script in (("make", MAKE % "|".join(WEAKEN)), ("git", GIT)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    calls = folder / "calls"
    calls.write_text("")
    environment = {
        **os.environ,
        **dict.fromkeys(WEAKEN, "1"),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "CALLS": str(calls),
        "TREE": tree,
        "BROKEN": broken,
    }
    done = subprocess.run(["bash", ROOT / ".ci" / "run"], env=environment, capture_output=True, check=False)
    return done.returncode, calls.read_text().splitlines()


@pytest.mark.parametrize(("tree", "half"), [("7f", "machines"), ("8a", "others"), ("e0", "others"), ("00", "machines")])
def test_it_calls_its_commands_with_nothing_that_leaves_tests_out(tmp_path: Path, tree: str, half: str) -> None:
    assert ci(tmp_path, tree) == (0, ["make test", f"make test-rest-{half}"])


@pytest.mark.parametrize(
    ("tree", "broken", "calls"),
    [
        ("7f", "test", ["make test"]),
        ("7f", "test-rest-machines", ["make test", "make test-rest-machines"]),
        ("8f", "test-rest-others", ["make test", "make test-rest-others"]),
        ("", "", []),
    ],
)
def test_it_fails_where_a_command_fails(tmp_path: Path, tree: str, broken: str, calls: list[str]) -> None:
    code, called = ci(tmp_path, tree, broken)
    assert (code != 0, called) == (True, calls)


def test_each_command_is_known_to_the_checks_of_its_run() -> None:
    """A run by another marker expression would be one of chosen tests, which nothing checks."""
    targets = [f"test{name}" for name in ("", "-rest", "-rest-machines", "-rest-others")]
    shown = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r'-m "((?:not )?full.*)"$', shown, re.MULTILINE) == [name for name in COMMANDS if name]


def test_what_make_starts_stores_compiled_modules() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "SHOWN": "1"}
    show = ["make", "--no-print-directory", "--eval=show:; @env", "show"]
    done = subprocess.run(show, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "SHOWN=1" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout
