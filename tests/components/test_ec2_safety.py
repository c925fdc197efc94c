"""All that a cluster on EC2 registers keeps to the rules; each rule finds its default weakened; no secret is in plain sight."""

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from policy.rules import OF_NO_INTEREST, RULES, UNKNOWN, RuleOptions, check
from policy.rules.iam import ROLE, ROLE_POLICY
from policy.rules.instances import EFS, INSTANCE, KEY
from policy.rules.network import EGRESS, GROUP, INGRESS, TARGET
from tests.components.mocked import TOKEN, without_secrets
from tests.ec2.preparing import REGION, logged_in
from tests.ec2.registering import Registered, registered
from tests.pages import ROOT
from tfdeploy.backends.ec2.aws import account

CANARY = "canary-7f3a"
ANYTHING = '{"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::bucket/record/*"}]}'
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"

SHAPES: dict[str, tuple[dict[str, Any], RuleOptions]] = {
    "an overlay network, shared files of its own, new disks": (
        {"ec2": {"ebs_volumes": ["200GiB:/scratch"]}},
        RuleOptions(),
    ),
    "the host's network": ({"container": {"network": "host"}}, RuleOptions()),
    "a volume of the user's, no shared files": (
        {
            "ec2": {"efs": None, "ebs_volumes": ["VOLUME:/data"]},
            "ps": 0,
            "workers": 1,
            "train_dir": "/mnt/volumes/sdf/runs",
        },
        RuleOptions(),
    ),
    "spot instances with GPUs": (
        {"jobs": {"worker": {"ec2": {"spot": True, "instance_type": "g6.xlarge"}, "gpus": 1}}},
        RuleOptions(),
    ),
    "packages": (
        {"requirements": ["pandas==2.3.3"], "container": {"registry": "registry.example/team"}},
        RuleOptions(),
    ),
    "an image of the user's": (
        {"container": {"build": str(ROOT / "images" / "cpu"), "registry": "registry.example/team"}},
        RuleOptions(),
    ),
    "ssh from anywhere": ({"ec2": {"ssh_cidrs": ["anywhere"]}}, RuleOptions(anywhere=True)),
    "no public address": ({"ec2": {"connectivity": "private"}}, RuleOptions(public=False)),
    "reached through Systems Manager": (
        {"ec2": {"connectivity": "ssm", "ssh_cidrs": None}},
        RuleOptions(public=False, session_manager=True),
    ),
    "disks of another type": (
        {"ec2": {"root_volume_type": "io2", "ebs_volumes": ["200GiB:/scratch"]}},
        RuleOptions(disks=("gp3", "io2")),
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


@pytest.fixture(scope="module")
def default(shapes: Mapping[str, list[Registered]]) -> list[Registered]:
    """What the first of them registers."""
    return next(iter(shapes.values()))


def findings(resources: list[tuple[str, Any]], options: RuleOptions) -> list[tuple[str, str]]:
    """The rules that they break, and why."""
    return [(found.rule, found.why) for kind, inputs in resources for found in check(kind, inputs, options)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rules_find_nothing_in_what_a_cluster_registers(shapes: Mapping[str, list[Registered]], shape: str) -> None:
    made = [(one.kind, one.plain) for one in shapes[shape]]
    assert findings(made, SHAPES[shape][1]) == []
    assert INSTANCE in {kind for kind, _ in made}


@pytest.mark.parametrize(
    ("shape", "rules"),
    [("ssh from anywhere", {"closed-to-the-world"}), ("disks of another type", {"disk-types"})],
)
def test_what_was_asked_for_by_word_is_found_where_nobody_asked(
    shapes: Mapping[str, list[Registered]], shape: str, rules: set[str]
) -> None:
    assert {rule for rule, _ in findings([(one.kind, one.plain) for one in shapes[shape]], RuleOptions())} == rules


def test_a_public_address_is_found_where_the_path_is_private(default: list[Registered]) -> None:
    found = findings([(one.kind, one.plain) for one in default], RuleOptions(public=False))
    assert {rule for rule, _ in found} == {"no-public-address"}


def test_each_type_that_a_cluster_registers_is_looked_at_or_named_as_of_no_interest(
    shapes: Mapping[str, list[Registered]],
) -> None:
    made = {one.kind for resources in shapes.values() for one in resources}
    looked_at = {kind for rule in RULES for kind in rule.types}
    assert sorted(made - looked_at - {*OF_NO_INTEREST}) == []
    assert sorted({*OF_NO_INTEREST} - made) == []
    assert sorted(looked_at & {*OF_NO_INTEREST}) == []


Weaken = Callable[[dict[str, Any]], Any]


def put(key: str, value: Any) -> Weaken:
    """Give an input another value; `a.b` is inside."""
    *path, last = key.split(".")

    def weaken(inputs: dict[str, Any]) -> None:
        found: Any = inputs
        for step in path:
            found = found[int(step) if isinstance(found, list) else step]
        found[last] = value

    return weaken


def drop(*keys: str) -> Weaken:
    """Give no such inputs."""
    return lambda inputs: [inputs.pop(key, None) for key in keys]


def write(line: str) -> Weaken:
    """Add a line to the user data."""
    return lambda inputs: inputs.update(userData=f"{inputs['userData']}{line}\n")


def encode(line: str) -> Weaken:
    """Give it as encoded user data."""
    return lambda inputs: inputs.update(userDataBase64=base64.b64encode(line.encode()).decode())


def let_in(source: str, port: int) -> Weaken:
    """Let somebody in."""
    family = "cidrIpv6" if ":" in source else "cidrIpv4"
    return lambda inputs: inputs.update({"fromPort": port, "toPort": port, "cidrIpv4": None, family: source})


WEAKER: list[tuple[str, str, str, Weaken]] = [
    ("imdsv2", INSTANCE, "m0", put("metadataOptions.httpTokens", "optional")),
    ("hop-limit", INSTANCE, "m0", put("metadataOptions.httpPutResponseHopLimit", 2)),
    ("encrypted-disks", INSTANCE, "m0", put("rootBlockDevice.encrypted", False)),
    ("encrypted-disks", INSTANCE, "m0", put("ebsBlockDevices.0.encrypted", None)),
    ("encrypted-files", EFS, "efs", put("encrypted", False)),
    ("encrypted-files", EFS, "efs", drop("encrypted")),
    ("disk-types", INSTANCE, "m0", put("rootBlockDevice.volumeType", "gp2")),
    ("disk-types", INSTANCE, "m0", put("ebsBlockDevices.0.volumeType", None)),
    ("no-secrets", INSTANCE, "m0", write("login AKIAIOSFODNN7EXAMPLE")),
    ("no-secrets", INSTANCE, "m0", write("docker swarm join --token SWMTKN-1-49nj1cmql0jkz5s954yi3oex")),
    ("no-secrets", INSTANCE, "m0", write('{"password": "correct-horse"}')),
    ("no-secrets", INSTANCE, "m0", write("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")),
    ("no-secrets", INSTANCE, "m0", encode("-----BEGIN OPENSSH PRIVATE KEY-----")),
    ("ends-for-good", INSTANCE, "m0", drop("instanceInitiatedShutdownBehavior")),
    ("ends-for-good", INSTANCE, "m0", put("ebsBlockDevices.0.deleteOnTermination", False)),
    ("pinned-image", INSTANCE, "m0", put("ami", "")),
    ("pinned-image", INSTANCE, "m0", put("ami", "resolve:ssm:/aws/service/ami")),
    ("tagged", INSTANCE, "m0", put("tags.tfdeploy:cluster", "")),
    ("tagged", KEY, "key", drop("tags")),
    ("tagged", ROLE, "manager", drop("tags")),
    ("no-wildcards", ROLE_POLICY, "record", put("policy", ANYTHING)),
    ("no-managed-policies", ROLE, "manager", put("managedPolicyArns", [ADMINISTRATOR])),
    ("tagged", EGRESS, "out", drop("tags")),
    ("own-group", INSTANCE, "m0", put("vpcSecurityGroupIds", [])),
    ("own-group", TARGET, "target", drop("securityGroups")),
    ("described", GROUP, "members", drop("description")),
    ("described", INGRESS, "ssh", put("description", "")),
    ("described", EGRESS, "out", put("description", "Managed by Pulumi")),
    ("not-inline", GROUP, "members", put("ingress", [{"cidrBlocks": ["0.0.0.0/0"]}])),
    ("closed-to-the-world", INGRESS, "ssh", let_in("0.0.0.0/0", 22)),
    ("closed-to-the-world", INGRESS, "ssh", let_in("::/0", 22)),
    ("members-only", INGRESS, "ssh", let_in("203.0.113.7/32", 2377)),
    ("members-only", INGRESS, "gossip", put("referencedSecurityGroupId", "sg-0123456789abcdef0")),
    ("members-only", INGRESS, "ssh", put("ipProtocol", "-1")),
]


@pytest.mark.parametrize(("rule", "kind", "name", "weaken"), WEAKER)
def test_a_default_that_is_weakened_breaks_its_rule_and_no_other(
    default: list[Registered], rule: str, kind: str, name: str, weaken: Weaken
) -> None:
    one = next(one for one in default if one.kind == kind and name in one.name)
    inputs = deepcopy(one.plain)
    weaken(inputs)
    assert [broken for broken, _ in findings([(kind, inputs)], RuleOptions())] == [rule]


def test_every_rule_for_what_is_registered_has_been_broken(default: list[Registered]) -> None:
    made = {one.kind for one in default}
    rules = {rule.name for rule in RULES if made & {*rule.types}} - {"no-public-address"}
    assert {rule for rule, *_ in WEAKER} == rules


def test_the_word_for_ssh_from_anywhere_opens_no_other_port(default: list[Registered]) -> None:
    inputs = deepcopy(next(one.plain for one in default if one.kind == INGRESS and "ssh" in one.name))
    let_in("0.0.0.0/0", 2222)(inputs)
    found = [rule for rule, _ in findings([(INGRESS, inputs)], RuleOptions(anywhere=True))]
    assert found == ["closed-to-the-world", "members-only"]


def test_what_is_not_known_yet_is_passed_over(default: list[Registered]) -> None:
    for one in default:
        for key in one.plain:
            assert findings([(one.kind, {**one.plain, key: UNKNOWN})], RuleOptions()) == []


def test_secrets_reach_nothing_of_awss_and_are_pulumi_secrets_elsewhere(
    shapes: Mapping[str, list[Registered]],
) -> None:
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
