"""An AWS account of moto's in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from tfdeploy.backends.ec2.aws import account


@contextmanager
def moto_account(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is a user of the account, with a state folder of its own; nothing of the machine's settings is used."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "unit")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unit")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    # None of Amazon's 1,300 images and as many policies: moto would create them for each empty account, in each region that the process
    # has used, and the box asks for the policies in the processes that have it.
    for name in ("MOTO_EC2_LOAD_DEFAULT_AMIS", "MOTO_IAM_LOAD_MANAGED_POLICIES"):
        monkeypatch.setenv(name, "false")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    account.forget()
    with mock_aws():
        yield
    account.forget()
