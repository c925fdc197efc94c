"""EC2 in a box is what it says: instances boot, can be reached, die, and leave nothing."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.box.cloud import Box
from tests.engine.cli import DockerFailed
from tests.engine.images import NAME, build
from tests.waiting import until

USER_DATA = """#!/bin/bash
hostname renamed
echo renamed >/etc/hostname
echo "user data says hello"
echo once >>/root/ran
systemctl disable --now ecs
systemctl start nothing || echo "refused with $?"
"""
BOOT = 240

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Pair:
    """Two instances of one call, and what opens them."""

    first: str
    second: str
    key: Path
    file_system: str


def address(box: Box, instance_id: str) -> str:
    return next(one.private_ip for one in box.instances() if one.id == instance_id)


def state(box: Box, instance_id: str) -> str:
    return next(one.state for one in box.instances() if one.id == instance_id)


def run(box: Box, count: int, **more: Any) -> list[str]:
    """Run instances; they boot."""
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "tested"}]}]
    request = {"ImageId": "ami-12345678", "MinCount": count, "MaxCount": count, "TagSpecifications": tags, **more}
    return [one["InstanceId"] for one in box.client("ec2").run_instances(**request)["Instances"]]


def booted(box: Box, instance_id: str, times: int = 1, stage: str = "finished at") -> None:
    """Cloud-init has come to this stage so many times."""
    until(lambda: _stages(box, instance_id).count(stage) == times, f"{instance_id}: {stage}", BOOT)


def _stages(box: Box, instance_id: str) -> str:
    return "\n".join(line for line in box.console(instance_id).splitlines() if line.startswith("Cloud-init v. "))


def ssh(box: Box, pair: Pair, instance_id: str, command: str) -> str:
    """What a command printed, run by ssh with the host key that the console has shown."""
    where = address(box, instance_id)
    lines = box.console(instance_id).partition("BEGIN SSH HOST KEY KEYS")[2].splitlines()
    known = pair.key.with_name(instance_id)
    known.write_text(f"{where} {next(line for line in lines if line.startswith('ssh-ed25519'))}\n")
    options = ["BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}", "IdentitiesOnly=yes"]
    flags = [f"-o{option}" for option in options]
    done = subprocess.run(
        ["ssh", "-F/dev/null", *flags, f"-i{pair.key}", f"ec2-user@{where}", command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def answers(box: Box, instance_id: str) -> bool:
    """Whether the machine's engine does."""
    try:
        return bool(box.run(instance_id, "docker", "version", "--format", "{{.Server.Version}}"))
    except DockerFailed:
        return False


@pytest.fixture(scope="module")
def pair(box: Box, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    key = tmp_path_factory.mktemp("ssh") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    ec2, efs = box.client("ec2"), box.client("efs")
    ec2.import_key_pair(KeyName="tested", PublicKeyMaterial=key.with_suffix(".pub").read_bytes())
    file_system = efs.create_file_system(CreationToken="tested")["FileSystemId"]
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    target = efs.create_mount_target(FileSystemId=file_system, SubnetId=subnet)["MountTargetId"]
    first, second = run(box, 2, KeyName="tested", UserData=USER_DATA, InstanceType="m7i.large")
    for machine in (first, second):
        booted(box, machine)
    yield Pair(first, second, key, file_system)
    ec2.terminate_instances(InstanceIds=[first, second])
    ec2.delete_key_pair(KeyName="tested")
    efs.delete_mount_target(MountTargetId=target)
    efs.delete_file_system(FileSystemId=file_system)
    assert box.left() == {}


def test_user_data_runs_and_the_console_is_real(box: Box, pair: Pair) -> None:
    found = next(one for one in box.instances() if one.id == pair.first)
    assert (found.name, found.state, found.type) == ("tested", "running", "m7i.large")
    console = box.client("ec2").get_console_output(InstanceId=pair.first, Latest=True)["Output"]
    assert "user data says hello" in console
    assert "refused with 5" in console
    assert "ssh-ed25519 " in console.partition("BEGIN SSH HOST KEY KEYS")[2]
    assert box.run(pair.first, "hostname") == "renamed"
    assert box.run(pair.first, "sh", "-c", "systemctl is-active docker sshd ecs || true").split() == [
        "active",
        "active",
        "inactive",
    ]


def test_what_the_api_reports_can_be_reached(box: Box, pair: Pair) -> None:
    shown = box.client("ec2").describe_instances(InstanceIds=[pair.second])["Reservations"][0]["Instances"][0]
    assert shown["PublicIpAddress"] == shown["PrivateIpAddress"] == address(box, pair.second)
    assert ssh(box, pair, pair.second, "id -un; sudo id -un").split() == ["ec2-user", "root"]
    assert ssh(box, pair, pair.second, "docker version --format '{{.Server.Os}}'") == "linux"


def test_machines_make_a_swarm(box: Box, pair: Pair) -> None:
    manager = address(box, pair.first)
    box.run(pair.first, "docker", "swarm", "init", "--advertise-addr", manager)
    token = box.run(pair.first, "docker", "swarm", "join-token", "--quiet", "worker")
    box.run(pair.second, "docker", "swarm", "join", "--token", token, f"{manager}:2377")
    nodes = ("docker", "node", "ls", "--format", "{{.Status}}")
    until(lambda: box.run(pair.first, *nodes).split() == ["Ready", "Ready"], "two nodes are ready")
    for machine in (pair.second, pair.first):
        box.run(machine, "docker", "swarm", "leave", "--force")


def test_an_efs_file_system_is_shared(box: Box, pair: Pair) -> None:
    for machine in (pair.first, pair.second):
        box.run(machine, "mkdir", "-p", "/mnt/shared")
        box.run(machine, "mount", "-t", "efs", "-o", "tls,_netdev", f"{pair.file_system}:/", "/mnt/shared")
    box.run(pair.first, "sh", "-c", "echo seen >/mnt/shared/file")
    assert box.run(pair.second, "cat", "/mnt/shared/file") == "seen"
    assert (box.efs(pair.file_system) / "file").read_text() == "seen\n"
    with pytest.raises(DockerFailed, match="check that your file system ID is correct"):
        box.run(pair.first, "mount", "-t", "efs", "fs-0123:/", "/mnt/shared")


def test_machines_pull_what_was_pushed(box: Box, pair: Pair, engine: str, python_image: str) -> None:
    # The one program of Debian that needs nothing else.
    dockerfile = f"FROM {python_image} AS whole\nFROM scratch\nCOPY --from=whole /sbin/ldconfig /program\n"
    name = box.push(build(engine, f"{NAME}/small:latest", dockerfile))
    shown = box.run(pair.first, "docker", "run", "--rm", "--memory=64m", name, "/program", "--version")
    assert "ldconfig" in shown


def test_a_stopped_instance_starts_with_its_disk(box: Box, pair: Pair) -> None:
    ec2 = box.client("ec2")
    line = f"{pair.file_system}:/ /mnt/kept efs _netdev,tls 0 0"
    box.run(pair.second, "sh", "-c", f"mkdir -p /mnt/kept; echo '{line}' >>/etc/fstab")
    ec2.stop_instances(InstanceIds=[pair.second])
    assert state(box, pair.second) == "stopped"
    ec2.start_instances(InstanceIds=[pair.second])
    booted(box, pair.second, 2)
    assert box.run(pair.second, "cat", "/root/ran", "/etc/hostname").split() == ["once", "renamed"]
    assert box.run(pair.second, "mountpoint", "/mnt/kept")
    assert ssh(box, pair, pair.second, "docker version --format '{{.Server.Os}}'") == "linux"


def test_nobody_answers_in_a_machine_that_hangs(box: Box, pair: Pair) -> None:
    box.hang(pair.first)
    try:
        assert state(box, pair.first) == "running"
        with pytest.raises(DockerFailed):
            box.run(pair.first, "true")
    finally:
        box.resume(pair.first)
    assert box.run(pair.first, "echo", "back") == "back"


def test_instances_end_by_shutdown_and_by_sudden_death(box: Box, pair: Pair) -> None:
    # The two of all other tests: this is the last one that has them.
    (ended,) = run(box, 1, InstanceInitiatedShutdownBehavior="terminate", InstanceType="g5.12xlarge")
    booted(box, ended, stage="init-local")
    assert box.run(ended, "nvidia-smi", "--list-gpus").count("GPU-") == 4
    until(lambda: answers(box, ended), "the engine answers")
    assert "nvidia" in box.run(ended, "docker", "info", "--format", "{{.Runtimes}}")
    box.run(ended, "shutdown", "-P", "+5")
    box.run(ended, "shutdown", "-c")
    for machine in (ended, pair.first):
        box.run(machine, "shutdown", "-h", "now")
    box.kill(pair.second)
    assert state(box, pair.second) == "terminated"
    until(lambda: state(box, ended) == "terminated", "the instance terminates itself")
    until(lambda: state(box, pair.first) == "stopped", "the instance stops itself")
    assert "System is going down." in box.console(ended)
    assert box.left()["instances"] == {pair.first}


def test_an_unknown_key_pair_is_refused_and_calls_are_counted(box: Box) -> None:
    before = box.calls("RunInstances")
    with pytest.raises(ClientError, match=r"InvalidKeyPair\.NotFound"):
        run(box, 1, KeyName="unknown")
    assert box.calls("RunInstances") == before + 1


def test_instances_are_placed_only_in_groups_that_exist(box: Box) -> None:
    ec2 = box.client("ec2")
    ec2.create_placement_group(GroupName="near", Strategy="cluster")
    assert box.left()["placement groups"] == {"near"}
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        run(box, 1, Placement={"GroupName": "far"})
    ec2.delete_placement_group(GroupName="near")
    assert "placement groups" not in box.left()
