"""The versions of Python that pyproject.toml names, each in an environment that set-up made for it.

All other tests run with 3.11, the oldest. The unit tests run with the newest too.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.setup import programs
from tests.setup.clones import Clone, clone

pytestmark = pytest.mark.full

NEWEST = "3.13"


def python(version: str) -> str:
    """An interpreter of this version, such as 3.12, from PATH or from pyenv; empty when there is none."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    of_pyenv = map(str, sorted(versions.glob(f"{version}.*/bin/python{version}")))
    ask = "import ctypes, ensurepip, ssl, sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, [shutil.which(f"python{version}"), *of_pyenv]):
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return ""


@pytest.fixture(scope="module")
def user(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Clone]]:
    """A clean clone, set up for this version."""
    version: str = request.param
    found = python(version)
    if not found:
        pytest.skip(f"there is no Python {version} here, neither on PATH nor of pyenv")
    folder = tmp_path_factory.mktemp("python")
    made = clone(folder / "clone", folder / "home")
    try:
        # The code of the large packages is not compiled: hardly any of it runs here.
        steps = ["local", "tests"] if version == NEWEST else ["local"]
        done = made.call("tools/setup", *steps, PYTHON=found, UV_COMPILE_BYTECODE="0")
        assert done.exit_code == 0, done.output
        yield version, made
    finally:
        made.remove()


@pytest.mark.timeout(3600)  # all unit tests are one test here
@pytest.mark.parametrize("user", [NEWEST], indirect=True)
def test_the_unit_tests_pass(user: tuple[str, Clone]) -> None:
    version, made = user
    about = made.bash("python -c 'import sys; print(sys.version)'")
    assert about.output.startswith(version)
    # Tests of the project's files would read the same files again, properties have examples too, and where AWS is asked, boto3 and its
    # emulation are most of what runs.
    left_out = " ".join(f"--ignore=tests/unit/{folder}" for folder in ("backends/ec2", "bench", "project"))
    done = made.bash(f"python -m pytest -q -p no:cacheprovider -m 'not full and not hypothesis' {left_out} tests/unit")
    assert done.exit_code == 0, done.output[-5000:]


@pytest.mark.parametrize("user", ["3.12", NEWEST], indirect=True)
def test_a_cluster_comes_up_and_goes(user: tuple[str, Clone], tmp_path: Path) -> None:
    version, made = user
    program = programs.write(tmp_path / "digits")
    try:
        up = made.bash("pulumi stack init dev && pulumi up --yes --skip-preview --non-interactive", program)
        assert up.exit_code == 0, up.output
        assert made.bash("pulumi stack output weight", program).output == "0.75\n"
        assert f"| {version}." in made.bash("tfdeploy logs chief-0", program).output
        shown = made.bash("tfdeploy status", program)
        assert "Run succeeded: chief-0 succeeded." in shown.output
    finally:
        down = made.bash("pulumi destroy --yes --skip-preview --non-interactive", program)
    assert down.exit_code == 0, down.output
