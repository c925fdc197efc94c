"""The policy of the documentation: which actions are in it, and to what each of them is limited."""

import json
import re
from typing import Any

import pytest

from tests.pages import ROOT

POLICY = json.loads((ROOT / "docs/iam-policy.json").read_text())


@pytest.mark.parametrize("statement", POLICY["Statement"], ids=lambda statement: statement["Sid"])
def test_each_statement_is_limited(statement: dict[str, Any]) -> None:
    assert not [action for action in statement["Action"] if "*" in action]
    if statement["Resource"] == "*":
        assert all(re.search(":(Describe|List|CreateFileSystem)", action) for action in statement["Action"])


def test_iam_accepts_the_size() -> None:
    """IAM's limit for a managed policy, without white space; it cannot be raised."""
    assert len("".join(json.dumps(POLICY).split())) <= 6144


def statements(action: str) -> list[dict[str, Any]]:
    """The statements with an action, without the others of them."""
    return [
        {key: one[key] for key in ("Resource", "Condition") if key in one}
        for one in POLICY["Statement"]
        if action in one["Action"]
    ]


TAGGED = {"StringLike": {"aws:ResourceTag/tfdeploy:cluster-id": "?*"}}
EC2 = "arn:aws:ec2:*:*:"


@pytest.mark.parametrize("action", ["TerminateInstances", "DeleteVolume", "DeleteSecurityGroup", "DeleteKeyPair"])
def test_only_what_has_the_tag_of_a_cluster_is_deleted(action: str) -> None:
    (limit,) = statements(f"ec2:{action}")
    assert (f"{EC2}*/*" in limit["Resource"], limit["Condition"]) == (True, TAGGED)


def test_roles_are_below_tfdeploys_path_and_passed_to_ec2_only() -> None:
    role = "arn:aws:iam::*:role/tfdeploy/*"
    passed = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    assert statements("iam:PassRole") == [{"Resource": role, "Condition": passed}]
    (created,) = statements("iam:CreateRole")
    assert created["Resource"] == ["arn:aws:iam::*:instance-profile/tfdeploy/*", role]
    (attached,) = statements("iam:AttachRolePolicy")
    assert attached["Condition"] == {
        "ArnEquals": {"iam:PolicyARN": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}
    }


def test_objects_and_settings_are_those_of_the_accounts_own_bucket() -> None:
    (limit,) = statements("s3:PutObject")
    assert limit["Resource"] == "arn:aws:s3:::tfdeploy-${aws:PrincipalAccount}-*"
    assert limit["Condition"] == {"StringEquals": {"s3:ResourceAccount": "${aws:PrincipalAccount}"}}
