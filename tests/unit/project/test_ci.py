"""`.ci/run` runs `make test` and one half of the other tests, and nothing in its environment weakens them."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WEAKEN = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "TFDEPLOY_TESTS_WITHOUT_DOCKER", "RENEW_GOLDENS", "TFDEPLOY_TESTS_RANDOM")
MAKE = """\
#!/bin/sh
echo "make $*" >>"$CALLS"
env | grep -E '^(%s)=' >>"$CALLS"
true
"""


@pytest.mark.parametrize(("tree", "half"), [("7f", "machines"), ("8a", "others"), ("e0", "others"), ("00", "machines")])
def test_it_calls_its_commands_with_nothing_that_leaves_tests_out(tmp_path: Path, tree: str, half: str) -> None:
    for name, script in (("make", MAKE % "|".join(WEAKEN)), ("git", f"#!/bin/sh\necho {tree}\n")):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    environment = {
        **os.environ,
        **dict.fromkeys(WEAKEN, "1"),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
    }
    subprocess.run(["bash", ROOT / ".ci" / "run"], env=environment, check=True)
    assert (tmp_path / "calls").read_text().splitlines() == ["make test", f"make test-rest-{half}"]


def test_what_make_starts_stores_compiled_modules() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "SHOWN": "1"}
    show = ["make", "--no-print-directory", "--eval=show:; @env", "show"]
    done = subprocess.run(show, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "SHOWN=1" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout
