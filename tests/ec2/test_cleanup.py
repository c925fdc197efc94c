"""Nothing is left, whatever happened before `destroy`; and what fails says which machine, which step, and why."""

from tests.ec2.project import Ec2Project
from tests.ec2.test_life import JOB, MANAGER, STEPS, TASKS, WORKER
from tests.waiting import until


def test_machines_that_are_gone_or_hang_are_destroyed(project: Ec2Project) -> None:
    project.write(JOB, STEPS)
    project.up()
    project.until_running(*TASKS)
    project.box.client("ec2").terminate_instances(InstanceIds=[project.machine(WORKER).id])
    hung = project.machine("test-worker-m0").id
    project.box.hang(hung)
    try:
        project.destroy()
    finally:
        project.box.resume(hung)


def test_pulumi_killed_while_machines_are_made(project: Ec2Project) -> None:
    project.write(JOB, STEPS)
    runs = project.box.calls("RunInstances")
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: project.box.calls("RunInstances") > runs, "a machine is asked for", 60)
    project.kill(process)
    until(lambda: "instances" in project.left(), "it is there", 60)

    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0
    project.destroy()


def test_pulumi_killed_while_the_swarm_is_formed(project: Ec2Project) -> None:
    project.write(JOB, STEPS)
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: any("connecting" in word for word in project.sees_machines().values()), "machines run", 60)
    project.kill(process)
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0

    project.up()
    project.until_running(*TASKS)
    assert len(project.left()["instances"]) == len(TASKS)
    project.box.kill(project.machine(MANAGER).id)
    project.destroy()


def test_a_machine_that_does_not_boot_is_named_with_its_console(project: Ec2Project) -> None:
    project.write(f'{JOB}, ssh_user="nobody-of-that-name"', STEPS)
    done = project.up(fails=True)
    assert "did not boot: its boot script failed. The end of its console:" in done.output
    assert "usermod --append --groups docker nobody-of-that-name" in done.output
    project.destroy()
