"""`pulumi new FOLDER` creates a project and a stack from each folder of programs/ that has a Pulumi program."""

import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from tests.integration.conftest import ROOT, Call, Project
from tests.setup.plugin_server import plugin_server
from tools.provision import plugins
from tools.provision.engine import Engine

TEMPLATES = {
    path.parent.name: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "programs").glob("*/Pulumi.yaml"))
}
IN_NODEJS = [name for name, project in TEMPLATES.items() if project["runtime"] == "nodejs"]
RUNS = [name for name in TEMPLATES if name not in IN_NODEJS or shutil.which("pulumi-language-nodejs")]


@pytest.fixture
def mine(projects: Callable[[str], Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """An empty project of a user who has the plugins of the installed packages, and to whom no other is offered."""
    home = tmp_path / "home"
    monkeypatch.setenv("PULUMI_HOME", str(home))
    for name in ("aws", "docker"):
        program = home / "plugins" / f"resource-{name}-v{version(f'pulumi-{name}')}" / f"pulumi-resource-{name}"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    pulumi = shutil.which("pulumi")
    assert pulumi is not None
    plugins.provide_tfdeploy(Engine(Path(pulumi).parent, "", ""))
    with plugin_server() as server:
        project = projects("mine")
        project.env.update(server.env, PULUMI_HOME=str(home))
        yield project
    assert server.asked == []


def new(project: Project, name: str) -> Call:
    """`pulumi new` of the template, and the stack."""
    template, folder = str(ROOT / "programs" / name), str(project.program)
    return project.call("new", template, "--yes", "--name=mine", f"--stack={project.stack}", "--dir", folder)


def files(folder: Path) -> set[Path]:
    """The files of a program, without what tools create beside it."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    created = {"__pycache__", "node_modules", "sdks"}
    return {path for path in found if not created & {*path.parts} and not path.name.startswith("Pulumi.")}


@pytest.mark.parametrize("name", RUNS)
def test_pulumi_new_ends_without_an_error_and_its_project_can_be_previewed(mine: Project, name: str) -> None:
    done = new(mine, name)
    assert done.exit_code == 0, done.output
    assert "Your new project is ready to go!" in done.output
    assert "error" not in done.output
    created = (mine.program / "Pulumi.yaml").read_text()
    assert created.startswith("name: mine\n")
    assert "\ntemplate:" not in created
    assert files(ROOT / "programs" / name) == files(mine.program), (
        "all of it, links followed, and no virtual environment"
    )

    preview = mine.call("preview", "--stack", mine.stack)
    assert preview.exit_code == 0, preview.output
    assert "The run succeeds when" in preview.output


@pytest.mark.parametrize("name", [name for name in IN_NODEJS if name not in RUNS])
def test_without_a_host_for_its_language_all_but_the_dependencies_is_created(mine: Project, name: str) -> None:
    done = new(mine, name)
    assert "no language plugin 'pulumi-language-nodejs'" in done.output, done.output
    assert files(ROOT / "programs" / name) == files(mine.program)


@pytest.mark.full
def test_what_pulumi_new_creates_of_mnist_in_yaml_trains(mine: Project) -> None:
    assert new(mine, "mnist_yaml").exit_code == 0
    mine.up()
    assert float(mine.outputs()["accuracy"]) > 0.85
    assert "MNIST accuracy: " in mine.log("worker-0", "mnist")
    assert mine.statuses() == {"worker-0": "succeeded", "worker-1": "succeeded"}
    assert mine.up().steps() == {"unchanged": 7}
    mine.destroy()
