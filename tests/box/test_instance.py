"""An instance in the box: its metadata service, which can be closed to tasks, S3, ssh through SSM; its services, as systemd's."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.box.cloud import COMMANDS, Box
from tests.box.programs import ASK, USER_DATA
from tests.box.test_cloud import booted, run, state
from tests.engine.cli import DockerFailed
from tests.waiting import until

pytestmark = pytest.mark.full

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}
SSM = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
MARK = 0x7466
TTL = "X-aws-ec2-metadata-token-ttl-seconds"

# Both close the service to all but marked sockets. The kernel looks for the way back of an answer too (rp_filter), by the
# same rules: without a mark on answers, `prohibit` closes it to marked sockets as well.
BY_ROUTES = """\
sysctl -qw net.ipv4.conf.all.src_valid_mark=1
iptables -t mangle -A PREROUTING -s 169.254.169.254 -j MARK --set-mark 0x7466
ip rule add preference 100 to 169.254.169.254 fwmark 0x7466 lookup main
ip rule add preference 101 to 169.254.169.254 prohibit
"""
BY_FIREWALL = """\
iptables -t mangle -A PREROUTING -d 169.254.169.254 -j DROP
iptables -A OUTPUT -d 169.254.169.254 -m mark ! --mark 0x7466 -j REJECT
"""
OPENED = """\
ip rule del preference 101
ip rule del preference 100
iptables -t mangle -F PREROUTING
iptables -F OUTPUT
sysctl -qw net.ipv4.conf.all.src_valid_mark=0
true
"""


@pytest.fixture(scope="module")
def profile(box: Box) -> Iterator[str]:
    iam = box.client("iam")
    iam.create_role(RoleName="tested", Path="/tfdeploy/", AssumeRolePolicyDocument=json.dumps(TRUST))
    iam.create_instance_profile(InstanceProfileName="tested", Path="/tfdeploy/")
    iam.add_role_to_instance_profile(InstanceProfileName="tested", RoleName="tested")
    yield "tested"
    iam.remove_role_from_instance_profile(InstanceProfileName="tested", RoleName="tested")
    iam.delete_instance_profile(InstanceProfileName="tested")
    iam.delete_role(RoleName="tested")
    assert box.left() == {}


@pytest.fixture(scope="module")
def machine(box: Box, profile: str) -> Iterator[str]:
    (found,) = run(box, 1, IamInstanceProfile={"Name": profile}, UserData=USER_DATA)
    booted(box, found)
    yield found
    box.client("ec2").terminate_instances(InstanceIds=[found])


def ask(box: Box, machine: str, path: str, *, token: str, mark: int = 0) -> str:
    """What the metadata service answers the machine: text, the code of a refusal, or why it could not be asked."""
    header = f"X-aws-ec2-metadata-token={token}" if token else ""
    return box.run(machine, "python3", "/root/ask", str(mark), "GET", path, header)


def described(box: Box, machine: str) -> Any:
    """What EC2 says of an instance."""
    return box.client("ec2").describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]


def put(box: Box, machine: str, *, mark: int = 0, seconds: str = "60") -> str:
    """A token, or why there is none."""
    return box.run(machine, "python3", "/root/ask", str(mark), "PUT", "api/token", f"{TTL}={seconds}")


def from_task(box: Box, machine: str, image: str, *options: str, mark: int = 0) -> str:
    """What a container of the machine gets that asks for a token."""
    command = ["docker", "run", "--rm", "--volume=/root/ask:/ask:ro", *options, image]
    return box.run(machine, *command, "python3", "/ask", str(mark), "PUT", "api/token", f"{TTL}=60")


def is_token(answer: str) -> bool:
    """Whether there is no space in it, as in all refusals, and it is long."""
    return len(answer) > 20 and " " not in answer


def test_metadata_needs_a_token(box: Box, machine: str) -> None:
    assert ask(box, machine, "meta-data/instance-id", token="") == "401"
    assert ask(box, machine, "meta-data/instance-id", token="made-up") == "401"
    assert put(box, machine, seconds="0") == put(box, machine, seconds="21601") == "400"
    token = put(box, machine)
    assert ask(box, machine, "meta-data/instance-id", token=token) == machine
    assert ask(box, machine, "meta-data/placement/region", token=token) == "us-west-2"
    assert ask(box, machine, "meta-data/nothing", token=token) == "404"
    short = put(box, machine, seconds="1")
    until(lambda: ask(box, machine, "meta-data/instance-id", token=short) == "401", "the token has expired")


def test_credentials_are_those_of_the_profile(box: Box, machine: str, profile: str) -> None:
    ec2, folder = box.client("ec2"), "meta-data/iam/security-credentials/"
    token = put(box, machine)
    assert ask(box, machine, folder, token=token) == profile
    found = json.loads(ask(box, machine, folder + profile, token=token))
    assert found["Code"] == "Success"
    assert {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"} < set(found)
    held = ec2.describe_iam_instance_profile_associations()["IamInstanceProfileAssociations"]
    ec2.disassociate_iam_instance_profile(AssociationId=held[0]["AssociationId"])
    assert ask(box, machine, folder, token=token) == "404"
    ec2.associate_iam_instance_profile(InstanceId=machine, IamInstanceProfile={"Name": profile})
    assert ask(box, machine, folder, token=token) == profile


def test_one_hop_keeps_containers_away_and_the_hosts_network_does_not(box: Box, machine: str, box_image: str) -> None:
    assert "timed out" in from_task(box, machine, box_image)
    assert is_token(from_task(box, machine, box_image, "--network=host"))
    options = {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    box.client("ec2").modify_instance_metadata_options(InstanceId=machine, **options)
    assert is_token(from_task(box, machine, box_image))
    box.client("ec2").modify_instance_metadata_options(InstanceId=machine, **{**options, "HttpPutResponseHopLimit": 1})


@pytest.mark.parametrize(("rules", "refused"), [(BY_ROUTES, "Permission denied"), (BY_FIREWALL, "Connection refused")])
def test_marked_sockets_alone_reach_it(box: Box, machine: str, box_image: str, rules: str, refused: str) -> None:
    box.client("ec2").modify_instance_metadata_options(InstanceId=machine, HttpPutResponseHopLimit=2)
    box.run(machine, "sh", "-ec", rules)
    try:
        assert refused in put(box, machine)
        assert is_token(put(box, machine, mark=MARK))
        task = "--network=host", "--cap-drop=NET_RAW"
        assert refused in from_task(box, machine, box_image, *task)
        assert "Operation not permitted" in from_task(box, machine, box_image, *task, mark=MARK)
        # Linux lets NET_RAW mark too, since 5.17.
        assert is_token(from_task(box, machine, box_image, "--network=host", mark=MARK))
        assert not is_token(from_task(box, machine, box_image, "--cap-drop=NET_RAW"))
    finally:
        box.run(machine, "sh", "-c", OPENED)
        box.client("ec2").modify_instance_metadata_options(InstanceId=machine, HttpPutResponseHopLimit=1)


def test_without_a_mark_on_answers_the_rule_closes_it_to_all(box: Box, machine: str) -> None:
    box.run(machine, "sh", "-ec", "\n".join(BY_ROUTES.splitlines()[2:]))
    try:
        assert "timed out" in put(box, machine, mark=MARK)
    finally:
        box.run(machine, "sh", "-c", OPENED)


def test_machines_and_this_computer_share_s3(box: Box, machine: str) -> None:
    s3, endpoint = box.client("s3"), box.environment["AWS_ENDPOINT_URL"]
    s3.create_bucket(Bucket="tested", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    assert box.left()["S3 buckets"] == {"tested"}
    box.run(machine, "curl", "-sf", "-T", "/etc/hostname", f"{endpoint}/tested/name")
    assert s3.get_object(Bucket="tested", Key="name")["Body"].read().decode().strip().startswith("ip-172-")
    s3.delete_object(Bucket="tested", Key="name")
    s3.delete_bucket(Bucket="tested")
    assert "S3 buckets" not in box.left()


def test_a_notice_reaches_a_spot_instance_and_then_it_is_gone(box: Box, machine: str) -> None:
    (spot,) = run(
        box,
        1,
        InstanceMarketOptions={"MarketType": "spot"},
        UserData=f"#!/bin/sh\ncat >/root/ask <<'END'\n{ASK}END\n",
    )
    booted(box, spot)
    assert described(box, spot)["InstanceLifecycle"] == "spot"
    token = put(box, spot)
    assert ask(box, spot, "meta-data/spot/instance-action", token=token) == "404"
    with pytest.raises(ValueError, match="no spot instance"):
        box.notice_spot(machine, 1)
    box.notice_spot(spot, 4)
    notice = json.loads(ask(box, spot, "meta-data/spot/instance-action", token=token))
    assert notice["action"] == "terminate"
    assert notice["time"].endswith("Z")
    assert state(box, spot) == "running"
    until(lambda: state(box, spot) == "terminated", "AWS has taken it")
    until(lambda: described(box, spot)["StateReason"]["Code"] == "Server.SpotInstanceTermination", "EC2 says why")


def test_ssh_goes_through_a_session(box: Box, machine: str, profile: str) -> None:
    iam = box.client("iam")
    assert "TargetNotConnected" in session(box, machine).stderr
    assert "TargetNotConnected" in session(box, "i-0123456789abcdef0").stderr
    iam.attach_role_policy(RoleName=profile, PolicyArn=SSM)
    try:
        found = session(box, machine)
        assert found.stdout.startswith("SSH-2.0-OpenSSH"), found.stderr
    finally:
        iam.detach_role_policy(RoleName=profile, PolicyArn=SSM)


def session(box: Box, target: str) -> "subprocess.CompletedProcess[str]":
    """A session as ssh's ProxyCommand starts it; sshd, told nonsense, says who it is and hangs up."""
    path = f"{COMMANDS}:{os.environ['PATH']}"
    command = "ssm start-session --document-name AWS-StartSSHSession --parameters portNumber=22 --region us-west-2"
    return subprocess.run(
        ["aws", *command.split(), "--target", target],
        input="nonsense\n",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **box.environment, "PATH": path},
        cwd=Path("/"),
        timeout=60,
    )


def shell(box: Box, machine: str, script: str) -> str:
    """What a shell printed."""
    return box.run(machine, "sh", "-c", script)


def test_a_service_lives_until_it_is_stopped(box: Box, machine: str) -> None:
    assert shell(box, machine, "systemctl is-active tested") == "active"
    assert shell(box, machine, "systemctl is-enabled tested") == "enabled"
    first = shell(box, machine, "cat /run/box/tested.pid")
    until(lambda: f"hello from {first}" in box.console(machine), "its output is on the console")
    shell(box, machine, f"kill -KILL {first}")
    until(lambda: shell(box, machine, "cat /run/box/tested.pid") != first, "it has started again")
    shell(box, machine, "systemctl stop tested && sleep 0.5")
    assert shell(box, machine, "systemctl is-active tested || echo $?").split() == ["inactive", "3"]
    shell(box, machine, "systemctl start tested && systemctl disable tested")
    assert shell(box, machine, "systemctl is-enabled tested || echo $?").split() == ["disabled", "1"]
    shell(box, machine, "systemctl enable tested")


@pytest.mark.parametrize(("unit", "why"), [("failing", "/bin/false"), ("unknown", "MemoryMax"), ("none", "not found")])
def test_a_service_that_cannot_start_says_why(box: Box, machine: str, unit: str, why: str) -> None:
    with pytest.raises(DockerFailed, match=why):
        box.run(machine, "systemctl", "start", unit)


def test_the_engine_is_stopped_with_its_socket(box: Box, machine: str) -> None:
    shell(box, machine, "systemctl stop docker.socket docker")
    assert shell(box, machine, "systemctl is-active docker || true") == "inactive"
    shell(box, machine, "systemctl start docker")


def test_what_is_before_the_engine_starts_first_and_ends_last(box: Box, machine: str) -> None:
    before = shell(box, machine, "cat /root/order").split()
    assert set(before) == {"later"}
    box.client("ec2").reboot_instances(InstanceIds=[machine])
    booted(box, machine, 2)
    assert "engine is gone" in box.console(machine)
    assert shell(box, machine, "cat /root/order").split() == [*before, "sooner"]
    assert shell(box, machine, "systemctl is-active tested docker").split() == ["active", "active"]
