"""docs/how-to/automate.md: the test of a user's program under Pulumi's mocks passes, and can fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, commands

PAGE = ROOT / "docs" / "how-to" / "automate.md"
INFRA, TEST = [block.text for block in blocks(PAGE, "python") if block.heading == "Test a program"]
MORE = """ps=1, secrets={"A": pulumi.Output.secret("x")}, metrics={"m": "(x)"}, until={"m": ">= 1"}"""
WORDS = {
    "valid": (INFRA, "1 passed"),
    "with secrets and a metric": (f"import pulumi\n{INFRA.replace('ps=1', MORE)}", "1 passed"),
    "another number of workers": (INFRA.replace("workers=2", "workers=1"), "AssertionError"),
    "refused": (INFRA.replace("workers=2", "workers=-1"), "workers: -1 is out of range"),
}


@pytest.mark.parametrize(("program", "words"), WORDS.values(), ids=WORDS)
def test_the_test_of_the_page_runs(program: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "train.py").write_text("print('loss: 0.5')\n")
    (tmp_path / "infra.py").write_text(program)
    (tmp_path / "test_infra.py").write_text(TEST)
    (command,) = [command for command in commands(PAGE) if "pytest" in command]
    python, *arguments = command.split()
    assert python == "python"
    done = subprocess.run(
        [sys.executable, *arguments, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert words in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 0) == (words == "1 passed")
    assert not list((tmp_path / "state").glob("tfdeploy/clusters/*")), "nothing is created"
