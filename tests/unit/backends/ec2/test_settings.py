"""The settings for AWS of a stack."""

import json
from typing import Any

import pytest

from tfdeploy.backends.ec2.aws.settings import Login, stack_login
from tfdeploy.errors import SpecError


def read(**values: Any) -> Login:
    return stack_login(values.get)


@pytest.mark.parametrize("form", [json.dumps, lambda value: value], ids=["as a program", "as a provider"])
def test_lists_are_json_in_a_program_and_plain_in_a_provider(form: Any) -> None:
    found = read(
        profile="ml",
        region="eu-west-1",
        allowedAccountIds=form(["210987654321"]),
        forbiddenAccountIds=form([111111111111, 11111111111.0]),
    )
    assert found == Login("ml", "eu-west-1", ("210987654321",), ("111111111111", "011111111111"))
    assert found.title == "profile ml"
    assert read() == Login()
    assert read().title == "", "the environment decides"


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(SpecError) as error:
        read(allowedAccountIds="210987654321")
    assert str(error.value) == (
        "configuration aws:allowedAccountIds: is not a list as JSON. "
        "Set it with `pulumi config set --path 'aws:allowedAccountIds[0]' VALUE`."
    )
