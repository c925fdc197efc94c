"""Checks of `tfdeploy doctor`: can this computer create machines on EC2, and reach them?"""

import shutil

from ...errors import SpecError
from ..base import FAIL, OK, Check
from ..docker.discover import provider
from .aws import account, aws_session
from .aws.aws_errors import AwsFailure, AwsUnreachable, aws_errors, refuse_no_region


def health(place: str = "") -> list[Check]:
    """Pulumi's providers, the region, the credentials, ssh."""
    with account.at(place) as region:
        return [provider("aws"), provider("docker"), _region(region), _credentials(region), _ssh()]


def _region(region: str) -> Check:
    try:
        refuse_no_region(region)
    except SpecError as error:
        return Check("aws region", FAIL, error.wrong, error.remedy)
    return Check("aws region", OK, region)


def _credentials(region: str) -> Check:
    name = "aws credentials"
    if not region:
        return Check(name, FAIL, "not checked without a region", "Set a region first.")
    try:
        with aws_errors(region):
            identity = aws_session.client("sts", region).get_caller_identity()
    except (SpecError, AwsFailure, AwsUnreachable) as error:
        return Check(name, FAIL, error.wrong, error.remedy)
    return Check(name, OK, str(identity["Arn"]))


def _ssh() -> Check:
    path = shutil.which("ssh")
    if path is None:
        return Check("ssh", FAIL, "is not installed", "Install the OpenSSH client: apt install openssh-client")
    return Check("ssh", OK, path)
