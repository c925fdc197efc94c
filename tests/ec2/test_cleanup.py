"""Nothing is left, whatever happened before `destroy`; and what fails says which machine, which step, and why."""

import subprocess

from tests.ec2.project import Ec2Project
from tests.ec2.test_life import JOB, MANAGER, STEPS, TASKS, WORKER
from tests.ec2.test_volumes import ZONE
from tests.waiting import until
from tfdeploy.backends.ec2 import failing

ALONE = JOB.replace("ps=1, workers=2", "workers=1")
WHY = "usermod --append --groups docker nobody-of-that-name"


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
    until(lambda: project.box.calls("RunInstances") > runs, "a machine is asked for")
    project.kill(process)
    until(lambda: "instances" in project.left(), "it is there")

    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0
    project.destroy()


def test_pulumi_killed_while_the_swarm_is_formed(project: Ec2Project) -> None:
    project.write(JOB, STEPS)
    process = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    until(lambda: any("connecting" in word for word in project.sees_machines().values()), "machines run")
    project.kill(process)
    assert project.call("cancel", "--yes", "--stack", project.stack).exit_code == 0

    project.up()
    project.until_running(*TASKS)
    assert len(project.left()["instances"]) == len(TASKS)
    project.box.kill(project.machine(MANAGER).id)
    project.destroy()


def test_a_machine_that_does_not_boot_is_named_with_its_console(project: Ec2Project) -> None:
    project.write(f'{ALONE}, ssh_user="nobody-of-that-name"', STEPS)
    for _ in range(3):
        done = project.up(fails=True)
        assert "test-worker-m0 did not boot: its boot script failed. The end of its console:" in done.output
        assert WHY in done.output

    runs = project.box.calls("RunInstances")
    given_up = project.up(fails=True)
    assert "test: machines: test-worker-m0 failed to boot 3 times in a row (m7i.large, ami-" in given_up.output
    assert WHY in given_up.output
    assert project.box.calls("RunInstances") == runs

    machine = project.machine("test-worker-m0").id
    hurry = 's/"boot": 1800.0/"boot": 1.0/'
    project.box.run(machine, "sed", "--in-place", hurry, "/etc/tfdeploy/caretaker.json")
    project.box.run(machine, "systemctl", "restart", "tfdeploy-caretaker")
    until(lambda: "instances" not in project.left(), "it has ended itself")
    assert "tfdeploy: ends: boot failed: not ready after 1 s" in project.box.console(machine)
    project.destroy()
    assert failing.read(project.cluster) == {}


def test_a_machine_whose_boot_failed_is_made_anew_when_that_is_mended(project: Ec2Project) -> None:
    ec2 = project.box.client("ec2")
    volume: str = ec2.create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"]
    disk = project.box.disk(volume)
    with disk.open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mkswap", disk], check=True, capture_output=True)
    own = {"worker": {"ebs_volumes": [f"{volume}:/data"]}}
    project.write(f"{JOB.replace('workers=2', 'workers=1')}, jobs={own!r}", STEPS)
    assert "test-worker-m0 did not boot: its boot script failed" in project.up(fails=True).output
    before = {name: project.machine(name).id for name in (MANAGER, "test-worker-m0")}

    subprocess.run(["wipefs", "--all", disk], check=True, capture_output=True)
    preview = project.call("preview", "--stack", project.stack).output
    assert "test-worker-m0 is made anew (its boot failed (1 of 3)); what stands there starts again: worker-0" in preview
    assert f"{MANAGER} is made" not in preview
    project.up()
    project.until_running("ps-0", "worker-0")
    assert project.machine(MANAGER).id == before[MANAGER]
    assert project.machine("test-worker-m0").id != before["test-worker-m0"]
    assert project.up().steps().keys() == {"unchanged"}
    project.destroy()
    ec2.delete_volume(VolumeId=volume)
