"""The stack's settings for Pulumi's AWS provider, as boto3 gets them."""

import json
from typing import Any

import pytest

from tfdeploy.backends.ec2.aws.settings import AwsSettings, stack_settings
from tfdeploy.errors import SpecError

ROLE = "arn:aws:iam::210987654321:role/deploy"


def read(**values: Any) -> AwsSettings:
    return stack_settings(values.get)


def test_without_settings_the_environment_decides() -> None:
    assert read() == AwsSettings()
    assert read().title == ""


@pytest.mark.parametrize("form", [json.dumps, lambda value: value], ids=["as a program", "as a provider"])
def test_lists_and_mappings_are_json_in_a_program_and_plain_in_a_provider(form: Any) -> None:
    role = {"roleArn": ROLE, "duration": "1h", "externalId": "x", "policyArns": ["arn:p"], "tags": {"team": "ml"}}
    found = read(
        assumeRoles=form([role, {"roleArn": f"{ROLE}-2"}]),
        allowedAccountIds=form(["210987654321"]),
        forbiddenAccountIds=form([111111111111, 11111111111.0]),
        endpoints=form([{"ec2": "http://ec2", "s3": "http://s3"}]),
        sharedConfigFiles=form(["~/other"]),
        insecure="true",
    )
    assert [one.arn for one in found.roles] == [ROLE, f"{ROLE}-2"]
    assert json.loads(found.roles[0].parameters) == {
        "RoleSessionName": "tfdeploy",
        "DurationSeconds": 3600,
        "ExternalId": "x",
        "PolicyArns": [{"arn": "arn:p"}],
        "Tags": [{"Key": "team", "Value": "ml"}],
    }
    assert (found.allowed_accounts, found.forbidden_accounts) == (
        ("210987654321",),
        ("111111111111", "011111111111"),
    )
    assert dict(found.endpoints) == {"ec2": "http://ec2", "s3": "http://s3"}
    assert (found.config_file, found.insecure) == ("~/other", True)
    assert found.title == f"role {ROLE}, role {ROLE}-2"


def test_no_key_is_shown() -> None:
    found = read(accessKey="AKIA", secretKey="canary-1", token="canary-2")
    web = read(assumeRoleWithWebIdentity={"roleArn": ROLE, "webIdentityToken": "canary-3"})
    assert "canary" not in f"{found!r} {found.title} {web!r} {web.title}"
    assert (found.secret_key, found.token, web.web_identity and web.web_identity.token) == (
        "canary-1",
        "canary-2",
        "canary-3",
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"assumeRoles": "arn:aws:iam::1:role/x"},
            (
                "configuration aws:assumeRoles: is not a list as JSON. "
                "Set it with `pulumi config set --path 'aws:assumeRoles[0]' VALUE`."
            ),
        ),
        (
            {"assumeRoleWithWebIdentity": [ROLE]},
            (
                "configuration aws:assumeRoleWithWebIdentity: is not a mapping as JSON. "
                "Set it with `pulumi config set --path 'aws:assumeRoleWithWebIdentity.NAME' VALUE`."
            ),
        ),
        (
            {"assumeRoles": [{"role": ROLE}]},
            (
                "configuration aws:assumeRoles: has a role without roleArn. Set roleArn, such as "
                "`pulumi config set --path 'aws:assumeRoles[0].roleArn' arn:aws:iam::123456789012:role/NAME`."
            ),
        ),
        (
            {"assumeRoles": [{"roleArn": ROLE, "duration": "long"}]},
            'configuration aws:assumeRoles: duration \'long\' is not valid. Give it as "1h" or "30m".',
        ),
        (
            {"sharedConfigFiles": ["a", "b"]},
            (
                "configuration aws:sharedConfigFiles: has 2 files, but boto3, which tfdeploy uses beside Pulumi's AWS provider, "
                "reads one. Keep one file."
            ),
        ),
    ],
)
def test_what_boto3_could_not_do_as_the_provider_does_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError) as error:
        read(**values)
    assert str(error.value) == sentence
