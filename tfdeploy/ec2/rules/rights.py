"""Rules for what machines may do in AWS."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .base import Asked, Inputs, Rule, at, fits, known

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"

_AWS_MANAGED = re.compile(r"arn:aws[a-z-]*:iam::aws:policy/(.+)")
_SESSION_MANAGER = "AmazonSSMManagedInstanceCore"
_OBJECTS = re.compile(r"arn:aws[a-z-]*:s3:::[a-z0-9.-]+/([\w.-]+/)*\*")
"""The objects of one bucket, or of one folder in it: their names cannot all be said."""


def _statements(inputs: Inputs) -> Iterator[Mapping[str, Any]]:
    """What policies allow; what they deny may be as wide as it likes."""
    inline = [at(item, "policy") for item in known(at(inputs, "inlinePolicies"))]
    for policy in known([at(inputs, "policy"), at(inputs, "assumeRolePolicy"), *inline]):
        document = json.loads(policy) if isinstance(policy, str) else policy
        yield from (one for one in known(at(document, "Statement")) if fits(at(one, "Effect"), "Allow"))


def _named(principal: Any) -> list[Any]:
    """All whom a statement is for."""
    groups = principal.values() if isinstance(principal, Mapping) else [principal]
    return [one for group in groups for one in known(group)]


def _no_wildcards(inputs: Inputs, _: Asked) -> Iterator[str]:
    for statement in _statements(inputs):
        yield from (f"{key} allows all but what it names" for key in statement if key.startswith("Not"))
        things = [one for one in known(statement.get("Resource")) if not _OBJECTS.fullmatch(one)]
        for one in (*known(statement.get("Action")), *things, *_named(statement.get("Principal"))):
            if "*" in one or "?" in one:
                yield f"it allows {one}"


def _no_managed(inputs: Inputs, asked: Asked) -> Iterator[str]:
    for arn in (*known(at(inputs, "policyArn")), *known(at(inputs, "managedPolicyArns"))):
        found = _AWS_MANAGED.fullmatch(arn)
        if found and not (asked.session_manager and found[1] == _SESSION_MANAGER):
            yield f"it has AWS's own policy {found[1]}"


RULES = (
    Rule(
        "no-wildcards",
        "What is allowed is named: no wildcard in actions, resources or principals, but the objects of one bucket's folder.",
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
        f"No policy of AWS's own, but {_SESSION_MANAGER} where the machines are reached through it.",
        (ROLE, ATTACHMENT),
        _no_managed,
        ("AwsSolutions-IAM4", "CKV_AWS_274"),
        word="session_manager",
    ),
)
