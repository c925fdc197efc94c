"""One life on EC2, on a bad day: its machines boot, die and come back under their names, and its training goes on to the end.
Its network is the user's; its files are made by the same program, in the account that the stack's configuration names.

A later capability adds assertions here, or a step, but no life of its own.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.box.bad_day import BadDay
from tests.box.cloud import ACTIONS, PROFILE_USER, Box
from tests.ec2.network import ACCOUNT, NetworkProject
from tests.ec2.project import Ec2Project
from tests.ec2.secrecy import READS, SECRETS, Canaries, lines_of_up
from tests.ec2.training import JOB, MANAGER, STEPS, TASKS, WORKER, lines, until_resumed
from tests.verbs import Verbs
from tests.waiting import until
from tfdeploy.backends.ec2.record_bucket import MANIFEST
from tfdeploy.backends.record_copy import RecordCopy

pytestmark = pytest.mark.full

PROJECT = NetworkProject
ZONE = "us-west-2b"
_ELSEWHERE = {
    "ec2": """AssociateIamInstanceProfile DeleteTags DeleteVolume DescribeIamInstanceProfileAssociations
    DescribeInstanceCreditSpecifications DescribeSpotInstanceRequests DescribeTags DescribeVolumesModifications
    DisassociateIamInstanceProfile ModifyInstanceAttribute ModifySecurityGroupRules ModifyVolume
    ReplaceIamInstanceProfileAssociation TerminateInstances""",
    "elasticfilesystem": "DescribeLifecycleConfiguration UntagResource",
    "iam": "AttachRolePolicy CreateServiceLinkedRole DetachRolePolicy UntagInstanceProfile UntagRole",
    "s3": "DeleteObject",
    "servicequotas": "GetServiceQuota",
    "ssm": "ResumeSession StartSession TerminateSession",
}
ELSEWHERE = {f"{service}:{name}" for service, names in _ELSEWHERE.items() for name in names.split()}
"""What is needed for things that this life has not: leftovers, a record that is not retained, GPUs, spot, SSM, changes of tags, disks
and profiles; and what only the real provider asks."""

MARKS = """\
import os, pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("stopped in order", flush=True), sys.exit(0)))
for name in ("scratch", "data"):
    marks = pathlib.Path("/", name, "marks")
    if marks.parent.is_dir():
        before = marks.read_text() if marks.exists() else ""
        print(name, "was", repr(before))
        with marks.open("w") as file:
            file.write(before + "x")
            file.flush()
            os.fsync(file.fileno())
"""
"""The worker's machine has two disks; each start of its task leaves a mark on both."""


@pytest.fixture(scope="module")
def volume(box: Box) -> str:
    """A volume of the user's, which the user has formatted."""
    found = str(box.client("ec2").create_volume(AvailabilityZone=ZONE, Size=1)["VolumeId"])
    with box.disk(found).open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mkfs.ext4", "-q", box.disk(found)], check=True)
    return found


@pytest.fixture(scope="module", autouse=True)
def day(box: Box, volume: str) -> Iterator[BadDay]:
    """A bad day: what was created is not found at once, and calls are refused, each for a while."""
    with box.bad_day() as found:
        yield found


def was(project: Ec2Project, name: str) -> list[str]:
    """What the worker found on a disk, each time that it was started."""
    return lines(project, "worker-0", f"{name} was ")


def command(project: Ec2Project, *arguments: str) -> str:
    """What a command prints."""
    _, out, err = Verbs(project.program, project.env).call(*arguments)
    return out.decode() + err


def test_another_account_than_the_stack_allows_is_asked_who_one_is_and_nothing_else(project: NetworkProject) -> None:
    project.write(JOB, STEPS)
    project.set("aws:allowedAccountIds[0]", "210987654321", "--path")
    before = project.box.all_calls()
    refused = project.up(fails=True).output
    assert "account" in refused
    assert ACCOUNT in refused
    assert (project.box.all_calls() - before).keys() == {"GetCallerIdentity"}
    project.set("aws:allowedAccountIds[0]", ACCOUNT, "--path")


def test_a_preview_cannot_show_a_cluster_in_a_subnet_that_only_the_update_knows(project: NetworkProject) -> None:
    preview = project.call("preview", "--stack", project.stack)
    assert preview.exit_code == 0, preview.output
    assert (
        "test: this preview cannot show the cluster, because only the update knows `ec2.efs`, `ec2.subnet_id`; "
        "the update creates it, or refuses it."
    ) in preview.output
    assert "target-a" in preview.output


def test_no_capacity_is_told_in_awss_words_with_a_remedy(project: NetworkProject, day: BadDay) -> None:
    # Nothing is throttled meanwhile: the last attempt tells why the machine was not made.
    every, day.every = day.every, 0
    day.short_of.add("m7i.large")
    refused = project.up(fails=True).output
    day.short_of.clear()
    day.every = every
    said = r"test-(ps|worker)-m0: AWS: .*InsufficientInstanceCapacity.*\. Choose another ec2\.instance_type or ec2\.subnet_id"
    assert re.search(said, refused), refused
    assert "instances" not in project.left()
    project.share()
    project.zone = "b"


def test_secrets_are_in_the_tasks_and_nowhere_else(project: Ec2Project, volume: str) -> None:
    own = {"worker": {"ec2": {"ebs_volumes": ["64MiB:/scratch", f"{volume}:/data"]}}}
    project.write(f"{JOB}, {SECRETS}, jobs={own!r}", READS + MARKS + STEPS)
    places = lines_of_up(project)
    project.until_running(*TASKS)
    canaries = Canaries(project, MANAGER)
    until(lambda: lines(project, "worker-0", "digest") == canaries.digests, "the task has read them")
    canaries.assert_absent(places)
    canaries.assert_absent(canaries.shared_places(MANAGER))
    for machine in (MANAGER, WORKER):
        canaries.assert_absent(canaries.places(machine))


def test_the_tables_say_what_was_made(project: Ec2Project) -> None:
    outputs = project.outputs()
    machines = {row["machine"]: (row["role"], row["size"], row["region"], row["status"]) for row in outputs["machines"]}
    assert machines == {
        MANAGER: ("Master", "m7i.large", "us-west-2", "connected"),
        WORKER: ("Worker", "m7i.large", "us-west-2", "connected"),
    }
    assert {row["hostname"]: row["machine"] for row in outputs["tasks"]} == {"ps-0": MANAGER, "worker-0": WORKER}
    assert outputs["cost"]["per_hour"] > 0
    assert all(row["public_ip"] == project.machine(row["machine"]).private_ip for row in outputs["machines"])


def test_the_machines_are_in_the_network_and_in_the_account_of_the_stack(project: NetworkProject) -> None:
    for name in (MANAGER, WORKER):
        described = project.described(name)
        assert (described["VpcId"], described["Placement"]["AvailabilityZone"]) == (project.vpc, ZONE)
        assert {"Key": "team", "Value": "ml"} in described["Tags"], "the provider's default tag"
    preview = project.call("preview", "--stack", project.stack).output
    assert f"AWS account {ACCOUNT} in us-west-2, by profile ml" in preview
    assert PROFILE_USER not in project.call("stack", "export", "--stack", project.stack).output


def test_a_machine_has_the_users_volume_and_a_new_one_and_keeps_both_when_it_restarts(project: Ec2Project) -> None:
    assert was(project, "data") == ["''"] == was(project, "scratch")
    worker = project.machine(WORKER).id
    for folder in ("sdf", "sdg"):
        assert project.box.run(worker, "findmnt", "-no", "FSTYPE", f"/mnt/volumes/{folder}").strip() == "ext4"
    project.box.client("ec2").reboot_instances(InstanceIds=[worker])
    until(lambda: was(project, "data") == ["''", "'x'"] == was(project, "scratch"), "both are kept")
    until_resumed(project, *TASKS, least=0)


def test_a_worker_that_dies_comes_back_under_its_name_and_training_goes_on(project: Ec2Project, volume: str) -> None:
    names = {name: project.machine(name).id for name in (MANAGER, WORKER)}
    project.box.kill(names[WORKER])
    assert project.sees_machines()[WORKER] == "gone"
    assert project.box.client("ec2").describe_volumes(VolumeIds=[volume])["Volumes"][0]["State"] == "available"
    preview = project.call("preview", "--stack", project.stack).output
    assert f"{WORKER}: will be created: m7i.large, ami-" in preview
    assert f"{MANAGER}: will be" not in preview
    done = project.up()
    assert done.steps()["replaced"] == 2, f"the machine and the attachment of its volume: {done.output}"
    assert done.touched() == {"test-swarm"}
    until_resumed(project, "worker-0")
    project.until_running(*TASKS)
    assert project.machine(MANAGER).id == names[MANAGER]
    assert project.machine(WORKER).id != names[WORKER]


def test_the_users_volume_outlives_its_machine_and_a_new_one_does_not(project: Ec2Project) -> None:
    until(lambda: was(project, "data")[-1] == "'xx'" and was(project, "scratch")[-1] == "''", "one is kept")
    assert project.up().steps().keys() == {"unchanged"}


def test_a_manager_that_dies_comes_back_under_its_name_and_training_goes_on(project: Ec2Project) -> None:
    """It is another Swarm, and the same record: also of what the launcher of the worker's machine could not report meanwhile."""
    worker, run, copy = project.machine(WORKER).id, project.look().view.run_state, RecordCopy(project.cluster)
    record, now = copy.record.record_id(), time.time()
    project.box.run(project.machine(MANAGER).id, "systemctl", "restart", "tfdeploy-watchdog")
    until(lambda: json.loads(project.stored()[MANIFEST])["at"] > now, "the record is in S3")
    project.box.kill(project.machine(MANAGER).id)
    project.box.run(worker, "ip", "link", "add", "vx-002001-left", "type", "vxlan", "id", "8193", "dstport", "4789")
    shutil.rmtree(copy.folder)  # as on another computer
    seen = project.sees_machines()
    assert (seen[MANAGER], seen[WORKER]) == ("gone", "unknown")
    assert "Run unknown: the controller is unreachable since" in command(project, "status", "--cluster", "test")
    assert "worker-0 | resumed from" in command(project, "logs", "--cluster", "test", "worker-0")
    project.up()
    until_resumed(project, *TASKS)
    after = project.look().view.run_state
    assert after is not None
    assert run is not None
    assert RecordCopy(project.cluster).record.record_id() == record
    assert (after.spec.id, after.submitted_at) == (run.spec.id, run.submitted_at)
    for name, task in run.tasks.items():
        assert after.tasks[name].attempt == task.attempt + 1
        assert len(lines(project, name, "resumed from")) == project.counts()[name], "its whole output is there"
    assert "stopped in order" in lines(project, "worker-0", "")
    assert "record restored" in command(project, "events", "--cluster", "test")
    assert project.machine(WORKER).id == worker
    assert "vx-002001-left" not in project.box.run(worker, "ls", "/sys/class/net")
    assert {project.sees_machines()[name] for name in (MANAGER, WORKER)} == {"connected"}


def test_a_change_of_access_is_said_before_machines_are_made_anew(project: Ec2Project) -> None:
    program = project.program / "__main__.py"
    before = program.read_text()
    program.write_text(before.replace("ec2={", "ec2={'connectivity': 'private', "))
    preview = project.call("preview", "--stack", project.stack).output
    program.write_text(before)
    why = "will be replaced (public access -> private access); tasks that restart"
    assert f"{WORKER}: {why}: worker-0" in preview
    assert f"{MANAGER}: {why}: ps-0" in preview


def test_what_is_finished_stays_finished_though_all_machines_die(project: Ec2Project) -> None:
    project.open()
    assert project.up(env={"TFDEPLOY_WAIT": "10m"}).steps().keys() == {"unchanged"}
    assert project.outputs()["state"] == "succeeded"
    canaries, runs = Canaries(project, MANAGER), project.box.calls("RunInstances")
    until(lambda: all(one in canaries.record() for one in canaries.digests), "the record of the end is in S3")
    canaries.assert_absent({"record": canaries.record()})
    for name in (MANAGER, WORKER):
        project.box.kill(project.machine(name).id)
    project.up()
    outputs = project.outputs()
    assert (outputs["state"], outputs["metrics"]) == ("succeeded", {"accuracy": 0.5})
    assert project.box.calls("RunInstances") == runs
    assert project.left() == {}, "the last machine had nothing to do any more"
    assert project.up().steps().keys() == {"unchanged"}
    assert {row["status"] for row in project.outputs()["machines"]} == {"gone"}


def test_destroy_leaves_the_users_volume_alone(project: Ec2Project, volume: str, day: BadDay) -> None:
    project.destroy()
    ec2 = project.box.client("ec2")
    (left,) = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    assert (left["State"], left.get("Tags", [])) == ("available", [])
    assert project.box.left()["disks"] == {volume}
    ec2.delete_volume(VolumeId=volume)
    assert not {"disks", "EFS file systems"} & {*project.box.left()}
    assert day.missed == set(), "each fault of a bad day has happened"


def test_the_policy_of_the_documentation_was_enough_and_has_nothing_else(box: Box) -> None:
    assert box.permissions.denied == {}
    assert ACTIONS - {*box.permissions.used} <= ELSEWHERE
