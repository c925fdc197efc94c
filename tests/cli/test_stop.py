"""A training is stopped, stays stopped, and is continued; `ls` and `status` show it at each moment."""

import re

import pytest

from tests.cli.calling import ARGUMENTS, TRAIN, open_gate, tfdeploy
from tests.integration.conftest import Project


@pytest.mark.full
def test_a_training_is_stopped_and_continued(project: Project) -> None:
    project.write(ARGUMENTS, TRAIN)
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1")
    listed = tfdeploy(project, "ls", folder=project.folder)
    assert re.search(r"^project/test/test +local +running +\d+ \w+$", listed.out, re.MULTILINE), listed.out + listed.err
    run = tfdeploy(project, "status", "--json").data[0]["run"]

    stopped = tfdeploy(project, "stop", "--yes")
    assert stopped.code == 0, stopped.err
    assert f'`resume_from="{run}"` starts a run from its last checkpoint' in stopped.out
    assert tfdeploy(project, "ls", "--json").data[0]["state"] == "stopped"
    shown = tfdeploy(project, "status")
    assert "Run stopped: by request." in shown.out
    assert re.search(r"worker-0 +stopped", shown.out)
    assert project.supervisor().running(), "the cluster remains"

    assert not project.up().touched()
    assert project.outputs()["state"] == "stopped", "another update does not start it again"
    assert tfdeploy(project, "explain").code == 0

    project.set("tfdeploy:resume_from", run)
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1")
    continued = tfdeploy(project, "status", "--json").data[0]
    assert (continued["state"], continued["run"] != run) == ("running", True)
    open_gate(project)
    assert tfdeploy(project, "wait", "--timeout", "5m").code == 0
    project.destroy()
    assert tfdeploy(project, "ls").out.startswith("There are no clusters that you have created from this computer. ")
    assert tfdeploy(project, "ls", "--all", "--json").data[0]["state"] == "destroyed"
