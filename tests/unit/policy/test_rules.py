"""Rules over what no default has: rights in AWS, volumes; and the page that is made from the rules."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from policy.rules import LEFT, RULES, UNKNOWN, RuleOptions, check
from policy.rules.iam import ATTACHMENT, ROLE, ROLE_POLICY
from policy.rules.instances import INSTANCE, VOLUME
from tools.safety import TARGET, safety

TAGS = {"tfdeploy:cluster-id": "i", "tfdeploy:project": "p", "tfdeploy:stack": "s", "tfdeploy:cluster": "c"}
CORE = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
OBJECTS = "arn:aws:s3:::tfdeploy-p-s-c/record/*"


def statement(**changed: Any) -> dict[str, Any]:
    """A statement that is as narrow as can be."""
    return {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": OBJECTS, **changed}


def policy(*statements: dict[str, Any]) -> dict[str, str]:
    """A policy of a role."""
    return {"policy": json.dumps({"Version": "2012-10-17", "Statement": statements})}


def role(**changed: Any) -> dict[str, Any]:
    """A role for instances."""
    who = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
    return {"assumeRolePolicy": json.dumps({"Statement": {**who, **changed}}), "tags": TAGS}


def broken(kind: str, inputs: Mapping[str, Any], options: RuleOptions = RuleOptions()) -> list[str]:  # noqa: B008
    return [found.rule for found in check(kind, inputs, options)]


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (ROLE, role()),
        (ROLE, {"assumeRolePolicy": UNKNOWN, "tags": TAGS, "inlinePolicies": [UNKNOWN]}),
        (ROLE_POLICY, policy(statement(), statement(Resource="arn:aws:s3:::tfdeploy-p-s-c/record/current.json"))),
        (ROLE_POLICY, policy(statement(Effect="Deny", Action="*", Resource="*"))),
        (ROLE_POLICY, {"policy": UNKNOWN}),
        (ATTACHMENT, {"policyArn": "arn:aws:iam::123456789012:policy/own"}),
        (ATTACHMENT, {"policyArn": UNKNOWN}),
        (VOLUME, {"encrypted": True, "tags": TAGS}),
    ],
)
def test_what_is_narrow_or_unknown_breaks_no_rule(kind: str, inputs: Mapping[str, Any]) -> None:
    assert broken(kind, inputs) == []


@pytest.mark.parametrize(
    ("rule", "kind", "inputs"),
    [
        ("no-wildcards", ROLE_POLICY, policy(statement(Action="s3:*"))),
        ("no-wildcards", ROLE_POLICY, policy(statement(Action=["s3:PutObject", "s3:Get?bject"]))),
        ("no-wildcards", ROLE_POLICY, policy(statement(Resource="*"))),
        ("no-wildcards", ROLE_POLICY, policy(statement(Resource=["arn:aws:s3:::tfdeploy-*/record/a"]))),
        ("no-wildcards", ROLE_POLICY, policy(statement(Resource="arn:aws:s3:::tfdeploy-p-s-c*"))),
        ("no-wildcards", ROLE_POLICY, policy(statement(), {"Effect": "Allow", "NotAction": "s3:DeleteObject"})),
        ("no-wildcards", ROLE_POLICY, {"policy": {"Statement": [statement(Resource="*")]}}),
        ("no-wildcards", ROLE, role(Principal="*")),
        ("no-wildcards", ROLE, role(Principal={"AWS": ["*"]})),
        ("no-wildcards", ROLE, {**role(), "inlinePolicies": [policy(statement(Resource="*"))]}),
        ("no-managed-policies", ROLE, {**role(), "managedPolicyArns": [CORE]}),
        ("no-managed-policies", ATTACHMENT, {"policyArn": "arn:aws-cn:iam::aws:policy/AdministratorAccess"}),
        ("tagged", ROLE, {**role(), "tags": {}}),
        ("encrypted-volumes", VOLUME, {"tags": TAGS}),
    ],
)
def test_what_is_wider_breaks_its_rule_and_no_other(rule: str, kind: str, inputs: Mapping[str, Any]) -> None:
    assert broken(kind, inputs) == [rule]


def test_the_policy_of_the_session_manager_needs_its_word_which_is_for_no_other_policy() -> None:
    options = RuleOptions(session_manager=True)
    assert broken(ATTACHMENT, {"policyArn": CORE}, options) == []
    assert broken(ATTACHMENT, {"policyArn": f"{CORE}2"}, options) == ["no-managed-policies"]


def test_a_machine_without_a_public_address_is_private_only_if_it_says_so() -> None:
    private = [rule for rule in RULES if rule.name == "no-public-address"]
    options = RuleOptions(public=False)
    for address, found in ((False, 0), (True, 1), (None, 1), (UNKNOWN, 0)):
        assert len(check(INSTANCE, {"associatePublicIpAddress": address}, options, private)) == found


def test_a_finding_names_its_rule_the_reason_and_the_rules_of_others() -> None:
    (found,) = check(ATTACHMENT, {"policyArn": CORE}, RuleOptions())
    assert (found.rule, found.why) == (
        "no-managed-policies",
        "it has the AWS managed policy AmazonSSMManagedInstanceCore",
    )
    assert found.ids == ("AwsSolutions-IAM4", "CKV_AWS_274")


def test_an_id_is_answered_or_left_and_never_both() -> None:
    answered = {name for rule in RULES for name in rule.ids}
    left = [name for one in LEFT for name in one.ids]
    form = re.compile(r"AwsSolutions-[A-Z]+[0-9]+|(EC2|EFS|IAM|S3)[A-Za-z]\w+|CKV2?_AWS_[0-9]+|AWS-[0-9]{4}")
    assert [name for name in (*answered, *left) if not form.fullmatch(name)] == []
    assert sorted(answered & {*left}) == []
    assert len(left) == len({*left})
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_the_page_is_made_from_the_rules() -> None:
    assert TARGET.read_text() == safety(), "run: python -m tools.safety"
