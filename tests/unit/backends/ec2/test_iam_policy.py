"""The least policy: which actions are in it, and to what each of them is limited."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import xform_name

import tfdeploy.backends.ec2
from tests.box.actions import iam_actions
from tfdeploy.backends.ec2.account_bucket import BucketFolder
from tfdeploy.backends.ec2.aws.iam_policy import (
    PolicyRequest,
    actions,
    document,
    everything,
    needed_actions,
)

FOLDER = Path(tfdeploy.backends.ec2.__file__).parent
FACTS = tomllib.loads((Path(__file__).parents[3] / "box/provider/facts.toml").read_text())
ACCOUNT, REGION = "123456789012", "us-west-2"
SERVICES = ("ec2", "efs", "iam", "s3", "service-quotas", "ssm", "sts")
REQUESTS = {
    "least": PolicyRequest(ACCOUNT, REGION),
    "new files": PolicyRequest(ACCOUNT, REGION, new_files=True),
    "spot": PolicyRequest(ACCOUNT, REGION, spot=True),
    "ssm": PolicyRequest(ACCOUNT, REGION, ssm=True),
    "own profile": PolicyRequest(ACCOUNT, REGION, instance_profile="mine"),
    "volumes": PolicyRequest(ACCOUNT, REGION, volumes=("vol-1", "vol-2")),
    "everything": everything(ACCOUNT, REGION),
    "anywhere": PolicyRequest(),
}


def called_operations() -> set[tuple[str, str]]:
    """Each operation of AWS's API whose name is in this package's sources as an attribute or a string: service and operation."""
    operations: dict[str, tuple[str, str]] = {}
    for service in SERVICES:
        for name in boto3.client(service, region_name=REGION).meta.service_model.operation_names:
            operations.setdefault(xform_name(name), (service, name))
    names = {name for path in FOLDER.rglob("*.py") for name in _names(ast.parse(path.read_text()))}
    return {operations[name] for name in names & set(operations)}


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield {"bucket_exists": "head_bucket"}.get(node.value, node.value)


def test_the_table_has_what_this_package_calls_and_nothing_else() -> None:
    called = {action for service, name in called_operations() for action in iam_actions(service, name)}
    own = {action for section in actions().values() for action in section.get("own", ())}
    assert called - {"sts:GetCallerIdentity"} == own


def test_the_table_has_each_resource_type_that_is_registered_as_the_box_knows_it() -> None:
    sources = "".join(path.read_text() for path in FOLDER.rglob("*.py"))
    registered = {name for name in re.findall(r"\baws\.\w+\.(\w+)\(", sources) if not name.endswith("Args")}
    tokens = {key for section in actions().values() for key in section if ":" in key}
    assert {token.rpartition(":")[2] for token in tokens} == registered
    assert [token for token in tokens if not re.search("@[0-9a-f]{40}$", FACTS[token]["source"])] == []


@pytest.mark.parametrize("name", REQUESTS)
def test_the_policy_has_each_action_that_is_needed_and_no_other(name: str) -> None:
    request = REQUESTS[name]
    named = {action for statement in document(request)["Statement"] for action in statement["Action"]}
    assert named == needed_actions(request)


@pytest.mark.parametrize("name", REQUESTS)
def test_each_statement_is_limited(name: str) -> None:
    for statement in document(REQUESTS[name])["Statement"]:
        assert not [action for action in statement["Action"] if "*" in action]
        if statement["Resource"] == "*":
            assert statement["Sid"] in ("Describe", "CreateFiles", "ListRoles")
            assert all(re.search(":(Describe|List|CreateFileSystem)", action) for action in statement["Action"])


def statements(request: PolicyRequest, action: str) -> list[dict[str, Any]]:
    """The statements with an action, without the others of them."""
    return [
        {key: one[key] for key in ("Resource", "Condition") if key in one}
        for one in document(request)["Statement"]
        if action in one["Action"]
    ]


TAGGED = {"StringLike": {"aws:ResourceTag/tfdeploy:cluster-id": "?*"}}
TAGS_IT = {"StringLike": {"aws:RequestTag/tfdeploy:cluster-id": "?*"}}
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}:"


@pytest.mark.parametrize("action", ["TerminateInstances", "DeleteVolume", "DeleteSecurityGroup", "DeleteKeyPair"])
def test_only_what_has_the_tag_of_a_cluster_is_deleted(action: str) -> None:
    assert statements(REQUESTS["least"], f"ec2:{action}") == [{"Resource": f"{EC2}*/*", "Condition": TAGGED}]


def test_machines_are_created_with_the_tag_and_with_the_group_and_key_of_a_cluster() -> None:
    created, parts, tagged = statements(REQUESTS["least"], "ec2:RunInstances")
    assert created == {"Resource": f"{EC2}instance/*", "Condition": TAGS_IT}
    assert tagged == {"Resource": f"{EC2}*/*", "Condition": TAGGED}
    kinds = {arn.rpartition(":")[2].partition("/")[0] for arn in parts["Resource"]}
    assert kinds == {"image", "network-interface", "security-group-rule", "subnet", "volume", "vpc"}


def test_tags_are_set_on_what_is_created_and_on_what_has_them() -> None:
    on_creation, parts, tagged = statements(REQUESTS["least"], "ec2:CreateTags")
    creating = {"ec2:CreateAction": ["CreateSecurityGroup", "ImportKeyPair", "RunInstances"]}
    assert on_creation["Condition"] == {**TAGS_IT, "StringEquals": creating}
    assert parts == {"Resource": [f"{EC2}security-group-rule/*", f"{EC2}volume/*"], "Condition": TAGS_IT}
    assert tagged["Condition"] == TAGGED


def test_objects_and_settings_are_those_of_the_one_bucket() -> None:
    name = BucketFolder(REGION, ACCOUNT, "x").name
    (statement,) = statements(REQUESTS["least"], "s3:PutObject")
    assert statement["Resource"] == [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"]
    assert statement["Condition"] == {"StringEquals": {"s3:ResourceAccount": ACCOUNT}}
    (anywhere,) = statements(REQUESTS["anywhere"], "s3:PutObject")
    assert anywhere["Resource"][0] == "arn:aws:s3:::tfdeploy-${aws:PrincipalAccount}-*"


def test_roles_are_below_tfdeploys_path_and_passed_to_ec2_only() -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/tfdeploy/*"
    passed = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    assert statements(REQUESTS["least"], "iam:PassRole") == [{"Resource": role, "Condition": passed}]
    (created,) = statements(REQUESTS["least"], "iam:CreateRole")
    assert created["Resource"] == [f"arn:aws:iam::{ACCOUNT}:instance-profile/tfdeploy/*", role]
    (attached,) = statements(REQUESTS["ssm"], "iam:AttachRolePolicy")
    assert attached["Condition"] == {
        "ArnEquals": {"iam:PolicyARN": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}
    }


def test_with_ones_own_profile_nothing_of_iam_is_changed() -> None:
    request = REQUESTS["own profile"]
    changes = {action for action in needed_actions(request) if action.startswith("iam:") and ":List" not in action}
    assert changes == {"iam:PassRole"}
    assert statements(request, "iam:PassRole")[0]["Resource"] == f"arn:aws:iam::{ACCOUNT}:role/mine"


def test_the_users_own_volumes_images_and_network_are_named() -> None:
    request = PolicyRequest(
        ACCOUNT, REGION, volumes=("vol-1",), images=("ami-1",), subnet_id="subnet-1", vpc_id="vpc-1"
    )
    resources = statements(request, "ec2:RunInstances")[1]["Resource"]
    assert {f"{EC2}subnet/subnet-1", f"arn:aws:ec2:{REGION}::image/ami-1"} <= set(resources)
    assert statements(request, "ec2:AttachVolume")[1] == {"Resource": f"{EC2}volume/vol-1"}
    parameter = PolicyRequest(ACCOUNT, REGION, images=("ssm:/team/image",))
    assert (
        f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/team/image"
        in statements(parameter, "ssm:GetParameter")[0]["Resource"]
    )


def test_other_partitions_have_their_names() -> None:
    text = json.dumps(document(everything(ACCOUNT, "cn-north-1")))
    assert "arn:aws:" not in text
    assert "ec2.amazonaws.com.cn" in text


def test_the_usual_policy_is_short_enough_for_a_managed_one() -> None:
    text = json.dumps(document(REQUESTS["new files"]), separators=(",", ":"))
    assert len(text) <= 6144
