"""The policy of the documentation: which actions are in it, and to what each of them is limited."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import xform_name

import tfdeploy.backends.ec2
from tests.box.actions import iam_actions
from tests.pages import ROOT

FOLDER = Path(tfdeploy.backends.ec2.__file__).parent
PROVIDER = ROOT / "tests/box/provider"
SERVICES = ("ec2", "efs", "iam", "s3", "service-quotas", "ssm", "sts")
POLICY = json.loads((ROOT / "docs/iam-policy.json").read_text())
ACTIONS = {action for statement in POLICY["Statement"] for action in statement["Action"]}


def called_operations(folder: Path) -> set[tuple[str, str]]:
    """Each operation of AWS's API whose name is in a folder's sources as an attribute or a string: service and operation."""
    operations: dict[str, tuple[str, str]] = {}
    for service in SERVICES:
        for name in boto3.client(service, region_name="us-west-2").meta.service_model.operation_names:
            operations.setdefault(xform_name(name), (service, name))
    names = {name for path in folder.rglob("*.py") for name in _names(ast.parse(path.read_text()))}
    return {operations[name] for name in names & set(operations)}


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield {"bucket_exists": "head_bucket"}.get(node.value, node.value)


def actions(folder: Path) -> set[str]:
    """What the calls of a folder's sources need."""
    return {action for service, name in called_operations(folder) for action in iam_actions(service, name)}


BESIDES = {
    "ec2": """AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateNetworkInterface DeleteNetworkInterface
    DescribeInstanceCreditSpecifications DescribeNetworkInterfaces DescribeSpotInstanceRequests DescribeTags
    DescribeVolumesModifications RevokeSecurityGroupIngress""",
    "elasticfilesystem": "DescribeLifecycleConfiguration",
    "iam": "CreateServiceLinkedRole PassRole TagInstanceProfile TagRole UntagInstanceProfile UntagRole",
    "ssm": "ResumeSession StartSession TerminateSession",
}
"""What calls with tags, roles or mount targets need besides, what the AWS CLI calls for ssh, and what the box's provider names in
another way: the rules of security groups by one function for both directions, and questions that only the real one asks."""


def test_the_policy_has_what_this_package_calls() -> None:
    assert actions(FOLDER) - {"sts:GetCallerIdentity"} <= ACTIONS


def test_the_policy_has_nothing_that_neither_this_package_nor_the_provider_calls() -> None:
    besides = {f"{service}:{name}" for service, names in BESIDES.items() for name in names.split()}
    assert ACTIONS - actions(FOLDER) - actions(PROVIDER) == besides


def test_the_policy_is_short_enough_for_a_managed_one() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
    assert len(json.dumps(POLICY, separators=(",", ":"))) <= 6144


@pytest.mark.parametrize("statement", POLICY["Statement"], ids=lambda statement: statement["Sid"])
def test_each_statement_is_limited(statement: dict[str, Any]) -> None:
    assert not [action for action in statement["Action"] if "*" in action]
    if statement["Resource"] == "*":
        assert all(re.search(":(Describe|List|CreateFileSystem)", action) for action in statement["Action"])


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
