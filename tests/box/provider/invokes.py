"""Functions of the provider."""

from collections.abc import Callable

from tests.box.provider.kinds import Aws
from tests.box.provider.values import Props


def _region(aws: Aws, given: Props) -> Props:
    name = aws.region(given)
    return {"id": name, "region": name, "name": name, "endpoint": f"ec2.{name}.amazonaws.com", "description": name}


def _identity(aws: Aws, given: Props) -> Props:
    identity = aws.client("sts", given).get_caller_identity()
    return {"id": aws.account, "accountId": identity["Account"], "arn": identity["Arn"], "userId": identity["UserId"]}


INVOKES: dict[str, Callable[[Aws, Props], Props]] = {
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
}
