"""Rules for what machines may do in AWS."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .base import Inputs, Rule, RuleOptions, fits, known_items, value_at

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"

_AWS_MANAGED = re.compile(r"arn:aws[a-z-]*:iam::aws:policy/(.+)")
_SESSION_MANAGER = "AmazonSSMManagedInstanceCore"
_OBJECTS = re.compile(r"arn:aws[a-z-]*:s3:::[a-z0-9.-]+/([\w.-]+/)*\*")
"""The objects of one bucket, or of one folder in it: their names cannot all be listed."""


def _statements(inputs: Inputs) -> Iterator[Mapping[str, Any]]:
    """The statements that allow something; statements that deny are not limited."""
    inline = [value_at(item, "policy") for item in known_items(value_at(inputs, "inlinePolicies"))]
    for policy in known_items([value_at(inputs, "policy"), value_at(inputs, "assumeRolePolicy"), *inline]):
        document = json.loads(policy) if isinstance(policy, str) else policy
        yield from (
            statement
            for statement in known_items(value_at(document, "Statement"))
            if fits(value_at(statement, "Effect"), "Allow")
        )


def _named(principal: Any) -> list[Any]:
    """The principals of a statement."""
    groups = principal.values() if isinstance(principal, Mapping) else [principal]
    return [name for group in groups for name in known_items(group)]


def _no_wildcards(inputs: Inputs, _: RuleOptions) -> Iterator[str]:
    for statement in _statements(inputs):
        yield from (f"{key} allows everything except what it names" for key in statement if key.startswith("Not"))
        things = [name for name in known_items(statement.get("Resource")) if not _OBJECTS.fullmatch(name)]
        for name in (*known_items(statement.get("Action")), *things, *_named(statement.get("Principal"))):
            if "*" in name or "?" in name:
                yield f"it allows {name}"


def _no_managed(inputs: Inputs, options: RuleOptions) -> Iterator[str]:
    for arn in (*known_items(value_at(inputs, "policyArn")), *known_items(value_at(inputs, "managedPolicyArns"))):
        match = _AWS_MANAGED.fullmatch(arn)
        if match and not (options.session_manager and match[1] == _SESSION_MANAGER):
            yield f"it has the AWS managed policy {match[1]}"


RULES = (
    Rule(
        "no-wildcards",
        "Permissions have no wildcard in actions, resources or principals, except the objects of one bucket's folder.",
        (ROLE, POLICY, ROLE_POLICY),
        _no_wildcards,
        (
            "AwsSolutions-IAM5",
            "IAMPolicyNoStatementsWithAdminAccess",
            "IAMPolicyNoStatementsWithFullAccess",
            "CKV_AWS_60",
            "CKV_AWS_62",
            "CKV_AWS_63",
            "CKV_AWS_355",
            "CKV2_AWS_40",
            "AWS-0057",
            "AWS-0345",
        ),
    ),
    Rule(
        "no-managed-policies",
        f"No policy managed by AWS, except {_SESSION_MANAGER} if the machines are reached through it.",
        (ROLE, ATTACHMENT),
        _no_managed,
        ("AwsSolutions-IAM4", "CKV_AWS_274"),
        option="session_manager",
    ),
)
