"""The policy pack asks the rules. pulumi_policy itself is not installed beside pulumi (docs/safety.md): a stand-in takes its place."""

import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from policy.rules import RULES
from policy.rules.instances import INSTANCE
from policy.rules.network import INGRESS
from tfdeploy.cluster import TYPE

PACK = Path(__file__).parents[3] / "policy"
OURS = f"urn:pulumi:dev::project::{TYPE}${INGRESS}::mnist-ssh-0"
THEIRS = f"urn:pulumi:dev::project::{INGRESS}::web"

OPEN = {"cidrIpv4": "0.0.0.0/0", "ipProtocol": "tcp", "fromPort": 22, "toPort": 22}


class UnknownValueError(Exception):
    """What pulumi_policy raises where a value is asked for that is not known yet."""


class Unknowing(dict[str, Any]):
    """Inputs, as pulumi_policy has them."""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if value is UnknownValueError:
            raise UnknownValueError
        return value


@pytest.fixture
def pack(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """The policies of the pack by name, as it makes them."""
    made: list[SimpleNamespace] = []
    stand_in, proxy = ModuleType("pulumi_policy"), ModuleType("pulumi_policy.proxy")
    vars(stand_in).update(
        EnforcementLevel=SimpleNamespace(MANDATORY="mandatory"),
        PolicyConfigSchema=SimpleNamespace,
        ResourceValidationPolicy=SimpleNamespace,
        PolicyPack=lambda **given: made.append(SimpleNamespace(**given)),
    )
    vars(proxy).update(UnknownValueError=UnknownValueError)
    monkeypatch.setitem(sys.modules, "pulumi_policy", stand_in)
    monkeypatch.setitem(sys.modules, "pulumi_policy.proxy", proxy)
    runpy.run_path(str(PACK))
    assert [(one.name, one.enforcement_level) for one in made] == [("tfdeploy", "mandatory")]
    return {policy.name: policy for policy in made[0].policies}


def violations(policy: Any, urn: str, kind: str, props: Mapping[str, Any], **config: Any) -> list[str]:
    """What the policy reports of one resource."""
    said: list[str] = []
    args = SimpleNamespace(urn=urn, resource_type=kind, props=Unknowing(props), get_config=lambda: config)
    policy.validate(args, said.append)
    return said


def test_each_rule_is_a_policy(pack: Mapping[str, Any]) -> None:
    assert [*pack] == [rule.name for rule in RULES]
    assert pack["no-secrets"].description.endswith("looks like a key. (CKV_AWS_46, AWS-0029)")


def test_a_policy_reports_what_its_rule_finds(pack: Mapping[str, Any]) -> None:
    said = violations(pack["closed-to-the-world"], OURS, INGRESS, OPEN)
    assert said == ["every address is allowed (0.0.0.0/0)"]
    assert violations(pack["described"], OURS, INGRESS, {**OPEN, "description": "ssh"}) == []


def test_a_word_in_the_configuration_is_heard(pack: Mapping[str, Any]) -> None:
    assert violations(pack["closed-to-the-world"], OURS, INGRESS, OPEN, anywhere=True) == []
    props = {"rootBlockDevice": {"volumeType": "io2"}}
    assert len(violations(pack["disk-types"], OURS, INSTANCE, props, disks=["gp3"])) == 1
    assert violations(pack["disk-types"], OURS, INSTANCE, props, disks=["gp3", "io2"]) == []
    assert pack["disk-types"].config_schema.properties == {
        "disks": {"type": "array", "items": {"type": "string"}, "default": ["gp3"]}
    }
    assert pack["imdsv2"].config_schema is None


def test_what_is_not_the_clusters_is_not_judged(pack: Mapping[str, Any]) -> None:
    assert violations(pack["closed-to-the-world"], THEIRS, INGRESS, OPEN) == []


def test_what_pulumi_does_not_know_yet_is_passed_over(pack: Mapping[str, Any]) -> None:
    unknown = {**OPEN, "cidrIpv4": UnknownValueError}
    assert violations(pack["closed-to-the-world"], OURS, INGRESS, unknown) == []
    options = {"metadataOptions": Unknowing(httpTokens=UnknownValueError, httpPutResponseHopLimit=2)}
    assert violations(pack["imdsv2"], OURS, INSTANCE, options) == []
    assert len(violations(pack["hop-limit"], OURS, INSTANCE, options)) == 1
