"""What is done before Pulumi hears of a resource, against an account of moto's in this process.

The regions are ones that EC2 in a box never uses: moto's state is one for the whole process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.clusters import ID, cluster_ref
from tests.unit.cases import spec
from tfdeploy.backends.docker import containers
from tfdeploy.backends.ec2.aws import account
from tfdeploy.backends.ec2.backend import BACKEND
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.errors import SpecError
from tfdeploy.plan.plan import make_plan

REGION, EMPTY = "us-east-2", "eu-north-1"
"""The other one has no default VPC while the tests run."""

ARGS: dict[str, Any] = {
    "backend": "ec2",
    "command": ["python", "/opt/train.py"],
    "ec2": {"instance_type": "m7i.large", "ssh_cidrs": ["203.0.113.7/32"], "efs": "new"},
    "ps": 1,
    "workers": 2,
}


@contextmanager
def moto_server() -> Iterator[str]:
    """Where moto answers as AWS."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def logged_in(endpoint: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process asks there, as a user whose home folder is this one; nothing may have been made in the end."""
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "refusals",
        "AWS_SECRET_ACCESS_KEY": "refusals",
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": f"{home}/none",
        "AWS_SHARED_CREDENTIALS_FILE": f"{home}/none",
        "HOME": str(home),
        "XDG_STATE_HOME": f"{home}/state",
    }

    def enter() -> None:
        for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        account.forget()

    (home / "key.pub").write_text("ssh-ed25519 AAAA me@here\n")
    enter()
    yield
    enter()
    found = made(REGION) + made(EMPTY)
    account.forget()
    assert found == []


def made(region: str) -> list[str]:
    """What tfdeploy would have made there."""
    ec2 = account.client("ec2", region)
    return [
        *(one["ReservationId"] for one in ec2.describe_instances()["Reservations"]),
        *(one["GroupId"] for one in ec2.describe_security_groups()["SecurityGroups"] if one["GroupName"] != "default"),
        *(one["KeyPairId"] for one in ec2.describe_key_pairs()["KeyPairs"]),
        *(one["FileSystemId"] for one in account.client("efs", region).describe_file_systems()["FileSystems"]),
    ]


def arguments(home: Path, **args: Any) -> dict[str, Any]:
    """The arguments over those that every test has, and over the group `ec2` key by key; None removes one."""
    ec2 = {**ARGS["ec2"], "ssh_public_key": f"{home}/key.pub", **args.get("ec2", {})}
    merged = {**ARGS, **args, "ec2": {key: value for key, value in ec2.items() if value is not None}}
    return {key: value for key, value in merged.items() if value is not None}


def prepare(home: Path, **args: Any) -> list[str]:
    """What is done before Pulumi hears of a resource, as the component does it; the warnings."""
    asked = spec(**arguments(home, **args))
    cluster = cluster_ref("ec2", ssh.home(account.connect(asked, None), f"mnist-{ID}"))
    inventory = BACKEND.planner.inspect(cluster, asked, home)
    plan = make_plan(asked, inventory)
    notices = containers.version_notices(asked, containers.installed_version())
    return [line for line in BACKEND.planner.validate(cluster, asked, plan, inventory, ()) if line not in notices]


def refusal(home: Path, **args: Any) -> str:
    with pytest.raises(SpecError) as error:
        prepare(home, **args)
    return str(error.value)
