"""A preview that cannot plan a cluster on a Swarm shows its resources as they are."""

import pytest

from tests.docker.project import DockerProject
from tests.integration.test_outputs import MADE, PROGRAM

pytestmark = pytest.mark.full


def test_an_existing_cluster_is_shown_as_it_is(project: DockerProject) -> None:
    def write(workers: int) -> None:
        arguments = f"workers=Made('count', {workers}).value, command=['true'], secrets={{'A': 'b'}}"
        project.write(arguments, "", PROGRAM)
        (project.program / "made.py").write_text(MADE)

    write(1)
    project.up()
    write(2)
    preview = project.call("preview", "--stack", project.stack).output
    assert "only the update knows `workers`; its resources are shown as they are now." in preview
    assert "delete" not in preview
    assert "replace" not in preview
    assert "~ 1 to update\n" in preview
    project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack)
    assert project.left() == {}
