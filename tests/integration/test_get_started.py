"""docs/get-started.md, from its first file to its last command, with real TensorFlow."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Project
from tests.pages import ROOT, blocks, normal

pytestmark = pytest.mark.full

PAGE = ROOT / "docs" / "get-started.md"
FIRST = "pulumi stack init dev"
"""The first command after the installation, which is the tests' own here."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty folder, in which the page's files are written."""
    found = Project(tmp_path, "digits")
    found.stack = "dev"
    found.use_plain_python()
    (settings,) = blocks(PAGE, "yaml")
    program, script = blocks(PAGE, "python")
    (found.program / "train").mkdir()
    for name, block in (("Pulumi.yaml", settings), ("__main__.py", program), ("train/train.py", script)):
        (found.program / name).write_text(block.text)
    yield found
    found.clean()


def test_every_command_of_the_page_runs(project: Project) -> None:
    steps = [step for block in blocks(PAGE, "console") for step in block.steps]
    steps = steps[[command for command, _ in steps].index(FIRST) :]
    outputs: dict[str, str] = {}
    for command, shown in steps:
        # Pulumi's own variable for `--yes`, so that the commands are those of the page.
        done = project.run("bash", "-c", command, env={"PULUMI_SKIP_CONFIRMATIONS": "true"})
        assert done.exit_code == 0, f"{command}:\n{done.output}"
        if shown:
            assert done.output.strip() == shown.strip(), command
        outputs.setdefault(command, done.output)
    assert len(re.findall("loss", outputs["tfdeploy logs chief-0 --grep loss --tail 3"])) == 3
    ends = [block for block in blocks(PAGE) if not block.language]
    for command, end in zip(("pulumi preview", "pulumi up", steps[-1][0]), ends, strict=True):
        assert {*_lines(end.text)} - {"…"} <= {*_lines(outputs[command])}, command
    assert (project.program / "digits.html").exists()


def _lines(text: str) -> list[str]:
    """The lines of a text, without what differs from one machine and time to the next. Pulumi indents those of a program."""
    return normal("\n".join(line.strip() for line in text.splitlines())).splitlines()
