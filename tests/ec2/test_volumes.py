"""Disks of a machine's own: one that goes with it, and one of the user's, which stays."""

from tests.docker.project import GATE
from tests.ec2.project import Ec2Project
from tests.waiting import until

MARKS = f"""\
import os, pathlib, time
for name in ("scratch", "data"):
    marks = pathlib.Path("/", name, "marks")
    before = marks.read_text() if marks.exists() else ""
    print(name, "was", repr(before))
    with marks.open("w") as file:
        file.write(before + "x")
        file.flush()
        os.fsync(file.fileno())
while not pathlib.Path(os.environ["COUNTER"], "{GATE}").exists() or os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    time.sleep(0.1)
"""
PS = "import time\nwhile True: time.sleep(1)\n"
WORKER, ZONE = "test-worker-m0", "us-west-2b"


def job(volume: str) -> str:
    """The arguments: the worker's machine has two disks."""
    own = {"worker": {"ebs_volumes": ["64MiB:/scratch", f"{volume}:/data"]}}
    return (
        'command=["sh", "-c", "exec python $TFDEPLOY_JOB_NAME.py"], code="code", ps=1, workers=1, wait="0", '
        'restart={"on": ["any"], "maximum": 20}, env={"COUNTER": __import__("os").environ["COUNTER"]}, '
        f"jobs={own!r}"
    )


def was(project: Ec2Project, name: str) -> list[str]:
    """What the worker found on a disk, each time that it was started."""
    lines = [text for _, _, text in project.look(10_000).view["logs"]["worker-0"]]
    return [line.partition(" was ")[2] for line in lines if line.startswith(f"{name} was ")]


def test_the_users_volume_outlives_machines_and_a_new_one_does_not(project: Ec2Project) -> None:
    ec2 = project.box.client("ec2")
    volume: str = ec2.create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"]
    project.write(job(volume), MARKS)
    for name, text in {"ps": PS, "worker": MARKS}.items():
        (project.program / "code" / f"{name}.py").write_text(text)
    project.up()
    project.until_running("ps-0", "worker-0")
    until(lambda: was(project, "data") == ["''"] == was(project, "scratch"), "both disks are empty")
    first = project.machine(WORKER).id
    for folder in ("sdf", "sdg"):
        assert project.box.run(first, "findmnt", "-no", "FSTYPE", f"/mnt/volumes/{folder}").strip() == "ext4"
    assert project.up().steps().keys() == {"unchanged"}

    ec2.reboot_instances(InstanceIds=[first])
    until(lambda: was(project, "data") == ["''", "'x'"] == was(project, "scratch"), "both are kept")

    project.box.kill(first)
    assert ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]["State"] == "available"
    project.up()
    until(lambda: was(project, "data")[-1] == "'xx'" and was(project, "scratch")[-1] == "''", "one is kept")
    assert project.machine(WORKER).id != first
    assert project.up().steps().keys() == {"unchanged"}

    project.destroy()
    (left,) = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    assert (left["State"], left.get("Tags", [])) == ("available", [])
    assert project.box.left()["disks"] == {volume}
    ec2.delete_volume(VolumeId=volume)
    assert "disks" not in project.box.left()
