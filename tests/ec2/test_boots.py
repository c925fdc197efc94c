"""A machine that does not boot is named with what it wrote on its console, is made anew when that is mended, and not for ever.

The machines have no public address; at the end one of them hangs and the other is gone.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ec2.project import Ec2Project
from tests.ec2.training import CARETAKER, JOB, MANAGER, STEPS, TASKS, WORKER, until_resumed
from tests.waiting import until
from tfdeploy.backends.ec2 import failing, reach

pytestmark = pytest.mark.full

ZONE = "us-west-2b"
PRIVATE = f'{JOB}, access="private"'


@pytest.fixture(scope="module")
def volume(life: Ec2Project) -> Iterator[str]:
    """A volume of the user's, on which there is no file system that a machine would mount."""
    ec2 = life.box.client("ec2")
    found: str = ec2.create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"]
    disk = life.box.disk(found)
    with disk.open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mkswap", disk], check=True, capture_output=True)
    yield found
    life.clean_machines()
    ec2.delete_volume(VolumeId=found)


def asked(volume: str, instance_type: str = "m7i.large") -> str:
    """The arguments: the worker's machine has the user's volume."""
    own = {"worker": {"ebs_volumes": [f"{volume}:/data"], "instance_type": instance_type}}
    return f"{PRIVATE}, jobs={own!r}"


def test_a_machine_that_does_not_boot_is_named_with_its_console(project: Ec2Project, volume: str) -> None:
    project.write(asked(volume), STEPS)
    done = project.up(fails=True)
    assert f"{WORKER} did not boot: its boot script failed. The end of its console:" in done.output
    assert "swap" in done.output.partition("The end of its console:")[2]
    preview = project.call("preview", "--stack", project.stack).output
    assert f"{WORKER} is made anew (its boot failed (1 of 3)); what stands there starts again: worker-0" in preview
    assert f"{MANAGER} is made" not in preview
