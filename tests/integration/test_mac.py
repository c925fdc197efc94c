"""On a Mac `local` is refused, and nothing has been created."""

from pathlib import Path

from tests.integration.conftest import Project
from tests.mac import ENVIRONMENT


def test_local_is_refused_on_a_mac_with_what_to_use_instead(project: Project) -> None:
    project.env.update(ENVIRONMENT)
    for call in (project.call("preview", "--stack", project.stack), project.up(fails=True)):
        assert call.exit_code != 0
        assert "backend: 'local' needs Linux, and this is macOS. Run the tasks as containers" in call.output
        assert "Traceback" not in call.output
    assert [one["type"] for one in project.resources()] == ["pulumi:pulumi:Stack"]
    assert not Path(project.env["XDG_STATE_HOME"], "tfdeploy").exists()
