"""`pulumi package add`, as docs/pulumi.md shows it: from the executable, from a folder and from a git repository."""

import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Project
from tests.pages import ROOT, commands
from tests.programs.git_server import HOST, GitServer, git_server
from tests.setup.clones import clone

pytestmark = pytest.mark.full

ADD = "pulumi package add "
SHOWN = [command for command in commands(ROOT / "docs" / "pulumi.md") if command.startswith(ADD)]
PROGRAM = """\
name: yaml
runtime: yaml
resources:
  test:
    type: tfdeploy:TensorFlowCluster
    properties:
      command: [python, -c, "print('loss: 0.25')"]
      workers: 1
      metrics: {loss: 'loss: (\\S+)'}
outputs:
  loss: ${test.metrics["loss"]}
"""
OTHERS = re.compile("pulumi[-_](aws|docker|tfdeploy)")
"""What the environment of the package does not have: other extras, and tfdeploy before pip installs it."""


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings for pip, and a folder with the packages that tfdeploy needs, so that it downloads none."""
    folder = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not OTHERS.match(path.name):
            (folder / path.name).symlink_to(path)
    # pip reads the third one as the value of `build_isolation`.
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this repository."""
    folder = tmp_path_factory.mktemp("repository")
    return clone(folder / "tfdeploy", folder / "home").folder


@pytest.fixture(scope="module")
def served(repository: Path) -> Iterator[GitServer]:
    """A git server with the repository, which is bare there."""
    bare = repository.parent / "OWNER" / "tfdeploy.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository), str(bare)], check=True)
    with git_server(repository.parent) as found:
        yield found


@pytest.mark.parametrize("command", SHOWN)
def test_a_package_is_added_and_used_without_a_registry(
    command: str, project: Project, repository: Path, served: GitServer, offline: dict[str, str]
) -> None:
    plugins = Path(project.env["PULUMI_HOME"], "plugins")
    plugins.unlink()  # the user's
    plugins.mkdir()
    del project.env["PULUMI_PYTHON_CMD"]  # that of these tests, which is not in a virtual environment of Pulumi
    command = command.replace("//HOST/", f"//{HOST}/").replace("/path/to/tfdeploy", str(repository))
    (project.program / "Pulumi.yaml").write_text(PROGRAM)
    project.name = "yaml"
    project.init()
    project.env |= {**served.env, **offline, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    added = project.run("bash", "-c", command)
    assert added.exit_code == 0, added.output
    assert re.search(r"^Added package (owner/)?tfdeploy$", added.output, re.MULTILINE)
    project.up()
    assert project.outputs()["loss"] == 0.25
    project.destroy()
    assert served.refused == [], "no registry was asked"
