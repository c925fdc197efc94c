"""Machines without a public address: reached in their own network, or through SSM."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.box.cloud import COMMANDS
from tests.ec2.project import Ec2Project
from tests.ec2.test_life import JOB, MANAGER, STEPS
from tests.waiting import until
from tfdeploy.backends.ec2 import reach

PAIR = JOB.replace("workers=2", "workers=1")
WORKER = "test-worker-m0"
POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"


def described(project: Ec2Project, name: str) -> dict[str, Any]:
    """What EC2 says of a machine."""
    ids = [project.machine(name).id]
    found: dict[str, Any] = project.box.client("ec2").describe_instances(InstanceIds=ids)["Reservations"][0]
    instance: dict[str, Any] = found["Instances"][0]
    return instance


def ports(project: Ec2Project) -> set[int]:
    """The first ports that the cluster's security group lets in."""
    ec2 = project.box.client("ec2")
    (group,) = project.left()["groups"]
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]
    return {rule["FromPort"] for rule in rules if not rule["IsEgress"]}


def policies(project: Ec2Project, name: str) -> tuple[list[str], list[str]]:
    """Those of AWS's that a machine's role has, and those of its own."""
    iam = project.box.client("iam")
    profile = described(project, name)["IamInstanceProfile"]["Arn"].rpartition("/")[2]
    (role,) = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
    attached = iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
    return [one["PolicyArn"] for one in attached], iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]


def assert_without_public_address(project: Ec2Project) -> None:
    """Neither EC2 nor the outputs have one."""
    outputs = project.outputs()
    assert [row["public_ip"] for row in (*outputs["machines"], *outputs["tasks"])] == [""] * 4
    assert all("PublicIpAddress" not in described(project, name) for name in (MANAGER, WORKER))


def test_machines_are_reached_at_their_private_address(project: Ec2Project) -> None:
    project.write(f'{PAIR}, access="private"', STEPS)
    project.up()
    project.until_running("ps-0", "worker-0")
    assert_without_public_address(project)
    assert f"HostName {project.machine(WORKER).private_ip}\n" in reach.config(project.cluster).read_text()
    assert 22 in ports(project)
    assert project.up().steps().keys() == {"unchanged"}
    project.destroy()


@pytest.fixture
def session_commands(project: Ec2Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for the AWS command is on PATH, and something by the name of its plugin."""
    plugin = tmp_path / "plugin" / "session-manager-plugin"
    plugin.parent.mkdir()
    plugin.touch(mode=0o755)
    folders = f"{COMMANDS}:{plugin.parent}"
    project.env["PATH"] = f"{folders}:{project.env['PATH']}"
    monkeypatch.setenv("PATH", f"{folders}:{os.environ['PATH']}")


@pytest.mark.usefixtures("session_commands")
def test_machines_are_reached_through_ssm_and_open_no_port_for_ssh(project: Ec2Project) -> None:
    project.write(f'{PAIR}, access="ssm", ssh_from=None', STEPS)
    done = project.up()
    assert f"({project.machine(WORKER).id}, through SSM)" in done.output
    project.until_running("ps-0", "worker-0")
    assert_without_public_address(project)
    assert ports(project).isdisjoint({22})
    ((aws, own), (aws_of_manager, own_of_manager)) = (policies(project, name) for name in (WORKER, MANAGER))
    assert (aws, own, aws_of_manager, len(own_of_manager)) == ([POLICY], [], [POLICY], 1)
    assert project.up().steps().keys() == {"unchanged"}

    # Another computer knows the machines by what EC2 says of them.
    known = reach.read(project.cluster)
    shutil.rmtree(reach.of(project.cluster))
    project.call("preview", "--stack", project.stack)
    assert reach.read(project.cluster) == known
    until(lambda: project.sees()["worker-0"] == "running", "it is seen through SSM")
    project.destroy()
    assert project.box.left().keys().isdisjoint({"IAM roles", "IAM instance profiles"})


def test_machines_that_shall_be_reached_otherwise_are_made_anew(project: Ec2Project) -> None:
    project.write(PAIR, STEPS)
    project.up()
    before = {project.machine(name).id for name in (MANAGER, WORKER)}
    project.write(f'{PAIR}, access="private"', STEPS)
    said = (
        f"{WORKER} is made anew (public access gives way to private access); what stands there starts again: worker-0"
    )
    assert said in project.call("preview", "--stack", project.stack).output
    project.up()
    project.until_running("ps-0", "worker-0")
    assert before.isdisjoint(project.machine(name).id for name in (MANAGER, WORKER))
    assert_without_public_address(project)
    project.destroy()
