"""What is done before Pulumi hears of a resource, against an account of moto's in this process.

The regions are ones that EC2 in a box never uses: moto's state is one for the whole process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.unit.cases import spec
from tfdeploy.backends.ec2 import BACKEND
from tfdeploy.ec2 import account
from tfdeploy.errors import SpecError
from tfdeploy.plan import Given, make_plan

REGION, EMPTY = "us-east-2", "eu-north-1"
"""The other one has no default VPC while the tests run."""

ARGS: dict[str, Any] = {
    "backend": "ec2",
    "command": ["python", "/opt/train.py"],
    "instance_type": "m7i.large",
    "ssh_from": ["203.0.113.7/32"],
    "efs": "new",
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
        account.client.cache_clear()

    (home / "key.pub").write_text("ssh-ed25519 AAAA me@here\n")
    enter()
    yield
    enter()
    found = made(REGION) + made(EMPTY)
    account.client.cache_clear()
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


def prepare(home: Path, **args: Any) -> list[str]:
    """What is done before Pulumi hears of a resource, as the component does it; the warnings."""
    given = {**ARGS, "ssh_key": f"{home}/key.pub", **args}
    asked = spec(**{key: value for key, value in given.items() if value is not None})
    cluster = BACKEND.cluster("project", "dev", asked)
    asked = replace(asked, command=BACKEND.command(cluster, asked))
    train, data = (BACKEND.folder(cluster, asked, key, str(home)) for key in ("train_dir", "data_dir"))
    plan = make_plan(asked, BACKEND.machines(cluster, asked), Given("", train, data), BACKEND.standing_on(cluster))
    return list(BACKEND.check(cluster, asked, plan, ()))


def refusal(home: Path, **args: Any) -> str:
    with pytest.raises(SpecError) as error:
        prepare(home, **args)
    return str(error.value)
