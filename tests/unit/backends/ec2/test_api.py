"""What AWS's ways to say no come to."""

import pytest
from botocore.exceptions import ClientError

from tfdeploy.backends.ec2.aws import api


def refused(code: str) -> list[str]:
    raise ClientError({"Error": {"Code": code, "Message": "no"}}, "ListRoles")


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException"])
def test_who_may_not_even_list_has_made_none(code: str) -> None:
    assert api.empty_if_denied(lambda: refused(code)) == []


def test_any_other_no_is_one() -> None:
    assert api.empty_if_denied(lambda: ["one"]) == ["one"]
    with pytest.raises(ClientError, match="Throttling"):
        api.empty_if_denied(lambda: refused("Throttling"))
