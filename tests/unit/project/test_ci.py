"""`.ci/run` runs `make check` and then all tests, and nothing in its environment weakens them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.plugins.run_checks import COMMANDS

ROOT = Path(__file__).parents[3]
WEAKEN = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "TFDEPLOY_TESTS_WITHOUT_DOCKER", "RENEW_GOLDENS", "TFDEPLOY_TESTS_RANDOM")
MAKE = """\
#!/bin/sh
echo "make $*" >>"$CALLS"
env | grep -E '^(%s)=' >>"$CALLS"
[ "$*" != "$BROKEN" ]
"""
CALLS = ["make check", "make test", "make test-rest"]


@pytest.mark.parametrize(("broken", "calls"), [("", 3), ("check", 1), ("test", 2), ("test-rest", 3)])
def test_it_calls_its_commands_with_nothing_that_leaves_tests_out_and_fails_where_one_fails(
    tmp_path: Path, broken: str, calls: int
) -> None:
    made, path = tmp_path / "calls", tmp_path / "make"
    path.write_text(MAKE % "|".join(WEAKEN))
    path.chmod(0o755)
    about = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(made), "BROKEN": broken}
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "run"], env={**os.environ, **dict.fromkeys(WEAKEN, "1"), **about}, check=False
    )
    assert (done.returncode != 0, made.read_text().splitlines()) == (bool(broken), CALLS[:calls])


def test_each_command_is_known_to_the_checks_of_its_run() -> None:
    """A run by another marker expression would be one of chosen tests, which nothing checks."""
    shown = subprocess.run(["make", "-n", "test", "test-rest"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r'-m "((?:not )?full.*)"$', shown.stdout, re.MULTILINE) == [*COMMANDS]


def test_what_make_starts_stores_compiled_modules() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "SHOWN": "1"}
    show = ["make", "--no-print-directory", "--eval=show:; @env", "show"]
    done = subprocess.run(show, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "SHOWN=1" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout
