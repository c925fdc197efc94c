"""`pulumi new FOLDER` makes a program of each folder of programs/ that is one of Pulumi's."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT, Project

TEMPLATES = sorted(path.parent.name for path in (ROOT / "programs").glob("*/Pulumi.yaml"))
PREVIEWED = [
    name for name in TEMPLATES if "runtime: nodejs" not in (ROOT / "programs" / name / "Pulumi.yaml").read_text()
]


def made(project: Project, name: str) -> Path:
    """What `pulumi new` makes of the template."""
    template = str(ROOT / "programs" / name)
    # --generate-only: nothing is to be downloaded.
    done = project.call(
        "new", template, "--generate-only", "--yes", "--name", project.name, "--dir", str(project.program)
    )
    # It writes the files first, and then asks the language's host for the rest: only a missing host may end it with an error.
    if name not in PREVIEWED and not shutil.which("pulumi-language-nodejs"):
        assert done.exit_code != 0
        assert "no language plugin 'pulumi-language-nodejs'" in done.output, done.output
    else:
        assert done.exit_code == 0, done.output
    return project.program


@pytest.mark.parametrize("name", TEMPLATES)
def test_pulumi_new_brings_the_whole_folder(projects: Callable[[str], Project], name: str) -> None:
    program = made(projects("mine"), name)
    text = (program / "Pulumi.yaml").read_text()
    assert text.startswith("name: mine\n")
    assert "\ntemplate:" not in text
    brought = {path.relative_to(program) for path in program.rglob("*") if path.is_file() and not path.is_symlink()}
    folder = ROOT / "programs" / name
    kept = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    own = {path for path in kept if not {"__pycache__", "node_modules", "sdks"} & {*path.parts}}
    assert {path for path in own if not path.name.startswith("Pulumi.")} <= brought, "links are followed"


@pytest.mark.parametrize("name", PREVIEWED)
def test_what_pulumi_new_makes_can_be_previewed(projects: Callable[[str], Project], name: str) -> None:
    project = projects("mine")
    made(project, name)
    project.init()
    seen = project.call("preview", "--stack", project.stack)
    assert seen.exit_code == 0, seen.output
    assert "tasks, success" in seen.output


@pytest.mark.full
def test_what_pulumi_new_makes_of_mnist_in_yaml_trains(projects: Callable[[str], Project]) -> None:
    project = projects("mine")
    made(project, "mnist_yaml")
    project.init()
    project.up()
    assert float(project.outputs()["accuracy"]) > 0.85
    assert "MNIST accuracy: " in project.log("worker-0", "mnist")
    assert project.statuses() == {"worker-0": "succeeded", "worker-1": "succeeded"}
    assert project.up().steps() == {"unchanged": 6}
    project.destroy()
