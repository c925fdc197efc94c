"""A machine that does not boot is named with what it wrote on its console, is made anew when that is mended, and not for ever.

The machines have no public address; at the end one of them hangs and the other is gone.
"""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.ec2.project import Ec2Project
from tests.ec2.training import JOB, MANAGER, STEPS, TASKS, WATCHDOG, WORKER, resumed, until_resumed
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.machine import boot, model, ssh

pytestmark = pytest.mark.full

ZONE = "us-west-2b"
PRIVATE = f'{JOB}, ec2={{"connectivity": "private"}}'
WHY = "has no file system that is known here, and tfdeploy formats only volumes that it created"
DATA = bytes(range(1, 256)) * 4096
"""What a user has written to the volume itself, without a file system."""


@pytest.fixture(scope="module")
def volume(life: Ec2Project) -> Iterator[str]:
    """A volume of the user's, with data but without a file system."""
    ec2 = life.box.client("ec2")
    found: str = ec2.create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"]
    with life.box.disk(found).open("wb") as file:
        file.write(DATA)
        file.truncate(1 << 30)
    yield found
    life.clear()
    ec2.delete_volume(VolumeId=found)


def asked(volume: str, instance_type: str = "m7i.large") -> str:
    """The arguments: the worker's machine has the user's volume."""
    own = {"worker": {"ec2": {"ebs_volumes": [f"{volume}:/data"], "instance_type": instance_type}}}
    return f"{PRIVATE}, jobs={own!r}"


def test_a_machine_that_does_not_boot_is_named_with_its_console(project: Ec2Project, volume: str) -> None:
    project.write(asked(volume), STEPS)
    done = project.up(fails=True)
    told = f"{WORKER} did not boot: its boot script failed. The end of its console:"
    assert told in done.output
    assert f"{volume} {WHY}" in done.output.partition(told)[2]
    with project.box.disk(volume).open("rb") as file:
        assert file.read(len(DATA)) == DATA
    preview = project.call("preview", "--stack", project.stack).output
    assert f"{WORKER}: will be replaced (its boot failed (1 of 3)); tasks that restart: worker-0" in preview
    assert f"{MANAGER}: will be" not in preview


def test_the_same_machine_is_not_made_for_ever(project: Ec2Project) -> None:
    # The counting itself is shown without machines.
    known = ssh.folder(project.cluster) / f"failures/{WORKER}.json"
    once = known.read_text()
    known.write_text(json.dumps({**json.loads(once), "times": model.MOST_BOOT_FAILURES}))
    runs = project.box.calls("RunInstances")
    given_up = project.up(fails=True)
    known.write_text(once)
    assert f"test: ec2.instance_type: {WORKER} failed to boot 3 times in a row (m7i.large, ami-" in given_up.output
    assert WHY in given_up.output
    assert project.box.calls("RunInstances") == runs


def test_what_is_mended_and_changed_is_made_anew_and_nothing_else(project: Ec2Project, volume: str) -> None:
    before = {name: project.machine(name).id for name in (MANAGER, WORKER)}
    # As the console says; `tfdeploy exec --machine` runs this command.
    shell = BACKEND.access.ssh(project.cluster, WORKER)
    subprocess.run([*shell, "sudo", "mkfs.ext4", "-q", "/dev/sdf"], check=True, capture_output=True)
    project.write(asked(volume, "c7i.large"), STEPS)
    why = "its boot failed (1 of 3), m7i.large -> c7i.large"
    preview = project.call("preview", "--stack", project.stack).output
    assert f"{WORKER}: will be replaced ({why}); tasks that restart: worker-0" in preview
    assert f"{MANAGER}: will be" not in preview
    project.up()
    project.until_running(*TASKS)
    assert project.machine(MANAGER).id == before[MANAGER]
    assert (project.machine(WORKER).id != before[WORKER], project.machine(WORKER).type) == (True, "c7i.large")
    assert project.up().steps().keys() == {"unchanged"}


def test_machines_are_reached_at_their_private_address(project: Ec2Project) -> None:
    outputs = project.outputs()
    assert [row["public_ip"] for row in (*outputs["machines"], *outputs["tasks"])] == [""] * 4
    assert all("PublicIpAddress" not in project.described(name) for name in (MANAGER, WORKER))
    assert f"HostName {project.machine(WORKER).private_ip}\n" in ssh.config_file(project.cluster).read_text()
    assert 22 in project.ports()


def test_what_a_change_touches_is_done_where_machines_stay(project: Ec2Project, volume: str) -> None:
    before = {name: project.machine(name).id for name in (MANAGER, WORKER)}
    step = resumed(project, "worker-0")
    project.write(
        f'{asked(volume, "c7i.large")}, ec2={{"max_lifetime": "10h"}}, container={{"network": "host"}}', STEPS
    )
    project.up()
    until_resumed(project, *TASKS, least=step + 1)
    assert {name: project.machine(name).id for name in (MANAGER, WORKER)} == before
    told = project.box.run(before[MANAGER], "cat", WATCHDOG)
    assert json.loads(told)["lifetime"] == 36000.0
    assert project.outputs()["endpoints"]["ps-0"].startswith(f"{project.machine(MANAGER).private_ip}:")


def test_machines_that_are_gone_or_hang_are_destroyed(project: Ec2Project) -> None:
    project.box.client("ec2").terminate_instances(InstanceIds=[project.machine(WORKER).id])
    hung = project.machine(MANAGER).id
    project.box.hang(hung)
    try:
        project.destroy()
    finally:
        project.box.resume(hung)
    assert boot.read_failures(project.cluster) == {}
