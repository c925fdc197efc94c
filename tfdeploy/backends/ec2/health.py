"""Whether this computer can make machines on EC2, and reach them."""

import shutil

from ...ec2 import account
from ...errors import SpecError, TfdeployError
from ..base import FAIL, OK, Check
from ..docker.health import provider


def health(place: str = "") -> list[Check]:
    """Pulumi's providers, region, credentials, ssh."""
    region = place or account.default_region()
    return [provider("aws"), provider("docker"), _region(region), _credentials(region), _ssh()]


def _region(region: str) -> Check:
    try:
        account.refuse_no_region(region)
    except SpecError as error:
        return Check("aws region", FAIL, error.wrong, error.remedy)
    return Check("aws region", OK, region)


def _credentials(region: str) -> Check:
    what = "aws credentials"
    if not region:
        return Check(what, FAIL, "no region can be asked", "Give a region first.")
    try:
        with account.answers(region):
            found = account.client("sts", region).get_caller_identity()
    except TfdeployError as error:
        remedy = error.remedy if isinstance(error, SpecError) else "Look at the network, or at AWS_ENDPOINT_URL."
        return Check(what, FAIL, error.wrong if isinstance(error, SpecError) else str(error), remedy)
    return Check(what, OK, f"{found['Arn']}")


def _ssh() -> Check:
    path = shutil.which("ssh")
    if path is None:
        return Check("ssh", FAIL, "is not installed", "Install OpenSSH's client: apt install openssh-client")
    return Check("ssh", OK, path)
