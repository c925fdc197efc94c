"""All that a cluster on EC2 registers is encrypted, tagged and closed to others; no secret is in plain sight."""

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.components.mocked import TOKEN, without_secrets
from tests.ec2.preparing import REGION, logged_in
from tests.ec2.registering import Registered, registered
from tests.pages import ROOT
from tfdeploy.backends.ec2.aws import account

CANARY = "canary-7f3a"
INSTANCE, EFS, TARGET = "aws:ec2/instance:Instance", "aws:efs/fileSystem:FileSystem", "aws:efs/mountTarget:MountTarget"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
ROLE, ROLE_POLICY = "aws:iam/role:Role", "aws:iam/rolePolicy:RolePolicy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
TAGGED = (
    INSTANCE,
    EFS,
    GROUP,
    INGRESS,
    EGRESS,
    ROLE,
    "aws:ec2/keyPair:KeyPair",
    "aws:iam/instanceProfile:InstanceProfile",
)
TAGS = {"tfdeploy:cluster-id", "tfdeploy:project", "tfdeploy:stack", "tfdeploy:cluster"}
SSM_POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
KEYS = re.compile(
    r"\b(AKIA|ASIA)[A-Z0-9]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|\bSWMTKN-1-\w+"
    r"|(?i:(password|passwd|secret|token|api_?key|access_?key)[a-z_]*[\"']?\s*[=:]\s*[\"']?[^\s\"'$({<][^\s\"']{7})"
)
"""What looks like a key, in user data, which everyone with permission to describe a machine can read."""


class Asked(NamedTuple):
    """What the arguments of a shape ask for explicitly."""

    public: bool = True
    anywhere: bool = False
    disks: tuple[str, ...] = ("gp3",)
    session_manager: bool = False


SHAPES: dict[str, tuple[dict[str, Any], Asked]] = {
    "an overlay network, shared files of its own, new disks": ({"ec2": {"ebs_volumes": ["200GiB:/scratch"]}}, Asked()),
    "the host's network": ({"container": {"network": "host"}}, Asked()),
    "a volume of the user's, no shared files": (
        {
            "ec2": {"efs": None, "ebs_volumes": ["VOLUME:/data"]},
            "ps": 0,
            "workers": 1,
            "train_dir": "/mnt/volumes/sdf/runs",
        },
        Asked(),
    ),
    "spot instances with GPUs": (
        {"jobs": {"worker": {"ec2": {"spot": True, "instance_type": "g6.xlarge"}, "gpus": 1}}},
        Asked(),
    ),
    "packages": ({"requirements": ["pandas==2.3.3"], "container": {"registry": "registry.example/team"}}, Asked()),
    "an image of the user's": (
        {"container": {"build": str(ROOT / "images" / "cpu"), "registry": "registry.example/team"}},
        Asked(),
    ),
    "ssh from anywhere": ({"ec2": {"ssh_cidrs": ["anywhere"]}}, Asked(anywhere=True)),
    "no public address": ({"ec2": {"connectivity": "private"}}, Asked(public=False)),
    "reached through Systems Manager": (
        {"ec2": {"connectivity": "ssm", "ssh_cidrs": None}},
        Asked(public=False, session_manager=True),
    ),
    "disks of another type": (
        {"ec2": {"root_volume_type": "io2", "ebs_volumes": ["200GiB:/scratch"]}},
        Asked(disks=("gp3", "io2")),
    ),
}


@pytest.fixture(scope="module")
def shapes(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, list[Registered]]]:
    """What each of these clusters registers."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, logged_in(moto_endpoint, home, patch):
        patch.setenv("PATH", f"{_session_manager(home / 'bin')}:{os.environ['PATH']}")
        ec2 = account.client("ec2", REGION)
        zone = ec2.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
        volume = ec2.create_volume(AvailabilityZone=zone, Size=1)["VolumeId"]
        yield {shape: _registered(home, volume, args) for shape, (args, _) in SHAPES.items()}
        ec2.delete_volume(VolumeId=volume)


def _session_manager(folder: Path) -> Path:
    """Where commands are that must be there, and are not called."""
    folder.mkdir()
    for name in ("aws", "session-manager-plugin"):
        (folder / name).touch(0o755)
    return folder


def _registered(home: Path, volume: str, args: dict[str, Any]) -> list[Registered]:
    ec2 = args.get("ec2", {})
    disks = [text.replace("VOLUME", volume) for text in ec2.get("ebs_volumes", [])]
    return registered(home, **{**args, "ec2": {**ec2, "ebs_volumes": disks}, "secrets": {"PASSWORD": CANARY}})


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def asked(shape: str) -> Asked:
    return SHAPES[shape][1]


@pytest.fixture
def made(shapes: Mapping[str, list[Registered]], shape: str) -> list[tuple[str, Any]]:
    """Type and inputs of all that a shape registers."""
    return [(one.kind, one.plain) for one in shapes[shape]]


def of_kind(made: list[tuple[str, Any]], *kinds: str) -> list[Any]:
    """The inputs of the resources of these types."""
    return [inputs for kind, inputs in made if kind in kinds]


def test_a_machine_ends_for_good_and_its_metadata_and_disks_are_protected(
    made: list[tuple[str, Any]], asked: Asked
) -> None:
    machines = of_kind(made, INSTANCE)
    assert machines
    for machine in machines:
        assert machine["metadataOptions"]["httpTokens"] == "required"
        assert machine["metadataOptions"]["httpPutResponseHopLimit"] == 1
        assert machine["instanceInitiatedShutdownBehavior"] == "terminate"
        assert re.fullmatch("ami-[0-9a-f]{8,17}", machine["ami"])
        assert machine["vpcSecurityGroupIds"]
        assert asked.public or machine["associatePublicIpAddress"] is False
        for disk in (machine["rootBlockDevice"], *machine.get("ebsBlockDevices", ())):
            assert (disk["encrypted"], disk["deleteOnTermination"]) == (True, True)
            assert disk["volumeType"] in asked.disks


def test_nothing_in_user_data_looks_like_a_key(made: list[tuple[str, Any]]) -> None:
    for machine in of_kind(made, INSTANCE):
        decoded = base64.b64decode(machine.get("userDataBase64") or "").decode(errors="replace")
        assert KEYS.search((machine.get("userData") or "") + decoded) is None


@pytest.mark.parametrize(
    "line",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "--token SWMTKN-1-49nj1cmql0",
        '{"password": "correct-horse"}',
        "SECRET_KEY = wJalrXUtnFE",
    ],
)
def test_what_looks_like_a_key_is_found(line: str) -> None:
    assert KEYS.search(line)


def test_shared_files_are_encrypted_and_in_the_clusters_own_group(made: list[tuple[str, Any]]) -> None:
    assert all(files["encrypted"] is True for files in of_kind(made, EFS))
    assert all(target["securityGroups"] for target in of_kind(made, TARGET))


def test_all_that_can_have_tags_has_those_of_the_cluster(made: list[tuple[str, Any]]) -> None:
    for inputs in of_kind(made, *TAGGED):
        assert {name for name in TAGS if inputs["tags"].get(name)} == TAGS


def test_only_ssh_is_open_to_others_and_to_everybody_only_where_asked(
    made: list[tuple[str, Any]], asked: Asked
) -> None:
    assert not any(group.get("ingress") or group.get("egress") for group in of_kind(made, GROUP))
    for rule in of_kind(made, INGRESS):
        source = rule.get("cidrIpv4") or rule.get("cidrIpv6")
        if source is None:
            assert rule["referencedSecurityGroupId"] == rule["securityGroupId"]
        else:
            assert (rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("tcp", 22, 22)
            assert asked.anywhere or source not in ("0.0.0.0/0", "::/0")
    for inputs in of_kind(made, GROUP, INGRESS, EGRESS):
        assert inputs["description"] not in ("", "Managed by Pulumi", "Managed by Terraform")


def test_roles_have_no_wildcards_and_no_policies_of_awss(made: list[tuple[str, Any]], asked: Asked) -> None:
    documents = [role["assumeRolePolicy"] for role in of_kind(made, ROLE)]
    documents += [one["policy"] for one in of_kind(made, ROLE_POLICY)]
    for document in documents:
        for statement in json.loads(document)["Statement"]:
            assert "*" not in json.dumps([statement["Action"], statement.get("Principal", "")])
            resources = statement.get("Resource", [])
            for resource in [resources] if isinstance(resources, str) else resources:
                assert "*" not in resource.removesuffix("/*")
    policies = {one["policyArn"] for one in of_kind(made, ATTACHMENT)}
    assert policies == ({SSM_POLICY} if asked.session_manager else set())
    assert not any(role.get("managedPolicyArns") or role.get("inlinePolicies") for role in of_kind(made, ROLE))


def test_secrets_reach_nothing_of_awss_and_are_pulumi_secrets_elsewhere(shapes: Mapping[str, list[Registered]]) -> None:
    for resources in shapes.values():
        for word in (CANARY, TOKEN):
            forms = (word, base64.b64encode(word.encode()).decode())
            holders = {one.kind for one in resources if any(form in json.dumps(one.inputs) for form in forms)}
            assert "docker:index/secret:Secret" in holders
            assert [kind for kind in holders if "aws" in kind] == []
            seen = json.dumps([without_secrets(one.inputs) for one in resources])
            assert [form for form in forms if form in seen] == []


LONGEST = 32_000
"""Characters of a text that Pulumi shows. It compares two texts by character: those of the archive of the agent, which has 300,000,
kept `pulumi preview --diff` busy for minutes."""


def test_no_text_is_too_long_for_pulumi_to_show_its_difference(shapes: Mapping[str, list[Registered]]) -> None:
    shown = [without_secrets(each.inputs) for registered in shapes.values() for each in registered]
    assert max(len(text) for text in _texts(shown)) < LONGEST


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
