"""Where the real provider asks AWS again: the stand-in does so there, and nowhere else.

What is said of the real provider was read in hashicorp/terraform-provider-aws. Below `internal/service` there:

- every call: ec2/service_package.go (1afc513): a lack of capacity is retried like throttling, up to `max_retries`
  attempts, 25 if none are given; issue 43193 there says that this takes 50 minutes. Throttling and answers of 500 and
  above are retried by the SDK; https://docs.aws.amazon.com/sdk-for-go/v2/developer-guide/configure-retries-timeouts.html.
- RunInstances: ec2/ec2_instance.go (0015dfc): an instance profile that is not known, or has no role, for two minutes;
  then the instance is waited for, whether it is found yet or not. The same of an association with a profile.
- security groups: ec2/vpc_security_group.go (0160692): waited for until found; deleted again for 15 minutes while
  something depends on them.
- roles, their policies, profiles: iam/role.go (0040ea6), role_policy.go (02f97af), role_policy_attachment.go (04c7984),
  instance_profile.go (013f173): a new one that is not found is looked for for two minutes.
- files: efs/file_system.go (0389f46), mount_target.go (0593466): waited for until available.
- key pairs: ec2/ec2_key_pair.go (05bc954): read once; rules: ec2/vpc_security_group_ingress_rule.go (00a3220): not read.

Its pauses grow from half a second to minutes; the stand-in's are short, or no test would see the end of them.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from botocore.exceptions import ClientError

T = TypeVar("T")

ATTEMPTS = 25
"""`max_retries` of the real provider."""
PROPAGATION = 120.0
"""How many seconds something may take until all of AWS knows it."""
DELETION = 900.0
"""How many seconds a security group may be in use."""
PAUSE, LONGEST = 0.05, 1.0
THROTTLING = (
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
    "EC2ThrottledException",
)
NO_CAPACITY = "InsufficientInstanceCapacity"


def pause(attempts: int) -> float:
    """The seconds before another attempt, after so many."""
    return float(min(LONGEST, PAUSE * 2 ** (attempts - 1)))


def retry_calls(client: Any, most: int) -> None:
    """Have a client of boto3's make a call up to so many times, as the real provider's does."""

    def again(response: tuple[Any, Mapping[str, Any]] | None, attempts: int, **_: Any) -> float | None:
        if response is None or attempts >= most:
            return None
        answer, parsed = response
        code = parsed.get("Error", {}).get("Code")
        wanted = answer.status_code >= 500 or code in (*THROTTLING, NO_CAPACITY)
        return pause(attempts) if wanted else None

    client.meta.events.register(f"needs-retry.{client.meta.service_model.service_id.hyphenize()}", again)


def retried(call: Callable[[], T], again: Callable[[ClientError], bool], seconds: float = PROPAGATION) -> T:
    """The answer of a call that is made again after these errors; in the end the error."""
    deadline, attempts = time.monotonic() + seconds, 0
    while True:
        attempts += 1
        try:
            return call()
        except ClientError as error:
            if not again(error) or time.monotonic() > deadline:
                raise
        time.sleep(pause(attempts))


def unknown_profile(error: ClientError) -> bool:
    """Whether EC2 does not know an instance profile yet, or not its role."""
    said = error.response["Error"]
    words = ("Invalid IAM Instance Profile", " has no associated IAM Roles")
    return said["Code"] == "InvalidParameterValue" and any(one in said["Message"] for one in words)


def in_use(error: ClientError) -> bool:
    """Whether something depends on a security group."""
    return error.response["Error"]["Code"] in ("DependencyViolation", "InvalidGroup.InUse")
