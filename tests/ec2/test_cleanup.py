"""Nothing is left, whatever happened before `destroy`."""

import pytest

from tests.ec2.project import Ec2Project
from tests.ec2.training import ALONE, STEPS, WORKER, limit, until_gone
from tests.waiting import until
from tfdeploy.backends.ec2.machine.user_data import FAILED

pytestmark = pytest.mark.full

JOB = f'{ALONE}, ec2={{"retain_record": False}}'


def killed_while_made(project: Ec2Project) -> None:
    """Begin an update, and kill Pulumi when it has asked for a machine."""
    runs = project.box.calls("RunInstances")
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: project.box.calls("RunInstances") > runs, "a machine is asked for")
    project.kill(process)
    until(lambda: "instances" in project.left(), "it is there")
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0


def test_a_machine_that_pulumi_does_not_know_and_that_does_not_boot_ends_itself(project: Ec2Project) -> None:
    project.use_plain_python()
    project.write(f'{JOB}, ec2={{"ssh_user": "nobody-of-that-name"}}', STEPS)
    killed_while_made(project)
    machine = project.machine(WORKER).id
    until(lambda: FAILED in project.box.console(machine), "its boot has failed")
    assert "usermod --append --groups docker nobody-of-that-name" in project.box.console(machine)
    limit(project, machine, "boot", 1.0)
    until_gone(project)
    assert "tfdeploy: ends: boot failed: not ready after 1 s" in project.box.console(machine)


def test_pulumi_killed_while_the_swarm_is_formed(project: Ec2Project) -> None:
    project.write(JOB, STEPS)
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: any("connecting" in word for word in project.sees_machines().values()), "machines run")
    project.kill(process)
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0

    project.up()
    project.until_running("worker-0")
    assert len(project.left()["instances"]) == 1


def test_the_manager_died_and_pulumi_is_killed_while_another_is_made(project: Ec2Project) -> None:
    dead = project.machine(WORKER).id
    project.box.kill(dead)
    killed_while_made(project)
    assert project.machine(WORKER).id != dead


def test_destroy_leaves_neither_the_machine_that_pulumi_does_not_know_nor_the_record(project: Ec2Project) -> None:
    project.destroy()
    assert project.stored() == {}
