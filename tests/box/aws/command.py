"""`aws ssm start-session` with AWS-StartSSHSession, the only thing that this stand-in for the AWS command does.

Moto has no sessions. Whether SSM would have the machine is asked of EC2 and IAM; the way to it is a plain connection.
"""

import argparse
import os
import re
import socket
import sys
import threading
from typing import Any

import boto3
from botocore.exceptions import ClientError

DOCUMENT = "AWS-StartSSHSession"
POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
"""What the agent of a machine needs to connect to SSM."""
FAILED = 254
"""The command's exit code when the service refuses, https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-returncodes.html."""


def main() -> int:
    """Connect standard input and output with a port of the instance; the exit code is the command's."""
    asked = _parser().parse_args()
    port = re.fullmatch(r'portNumber=(?:\["?)?(\d+)(?:"?\])?', asked.parameters)
    if asked.document_name != DOCUMENT or not port:
        print(f"The box knows only {DOCUMENT} with portNumber=…", file=sys.stderr)
        return FAILED
    session = boto3.Session(region_name=asked.region, profile_name=asked.profile)
    address = _connected(session, asked.target)
    if not address:
        words = "An error occurred (TargetNotConnected) when calling the StartSession operation"
        print(f"\n{words}: {asked.target} is not connected.", file=sys.stderr)
        return FAILED
    with socket.create_connection((address, int(port[1])), timeout=10) as machine:
        machine.settimeout(None)
        _pump(machine)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aws", description="A stand-in for the AWS command: it only starts sessions.")
    parser.add_argument("service", choices=["ssm"])
    parser.add_argument("operation", choices=["start-session"])
    parser.add_argument("--target", required=True)
    parser.add_argument("--document-name", default=DOCUMENT)
    parser.add_argument("--parameters", default="portNumber=22")
    parser.add_argument("--region")
    parser.add_argument("--profile")
    return parser


def _connected(session: Any, target: str) -> str:
    """The address of an instance whose agent SSM would hear; nothing where it would not."""
    try:
        found = session.client("ec2").describe_instances(InstanceIds=[target])["Reservations"]
    except ClientError:
        return ""
    instance = found[0]["Instances"][0] if found else {}
    if instance.get("State", {}).get("Name") != "running" or "IamInstanceProfile" not in instance:
        return ""
    iam = session.client("iam")
    name = instance["IamInstanceProfile"]["Arn"].rpartition("/")[2]
    for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        attached = iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
        if any(one["PolicyArn"] == POLICY for one in attached):
            return str(instance["PrivateIpAddress"])
    return ""


def _pump(machine: socket.socket) -> None:
    """Both ways, until the machine has said all."""

    def send() -> None:
        while data := os.read(sys.stdin.fileno(), 65536):
            machine.sendall(data)
        machine.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while data := machine.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
