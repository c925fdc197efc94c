"""The stand-in does with each property what the real provider does: the table of its facts is the measure."""

import asyncio
import contextlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pulumi.provider.experimental import provider as wire

from tests.box.provider import shapes
from tests.box.provider.kinds import Kind
from tests.box.provider.provider import GIVEN, KINDS, StandIn, given
from tests.box.provider.values import wrapped

FACTS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("facts.toml").read_text())
OF_ALL = {"region": "replaces computed", "tags": ""}
INSTANCE = "aws:ec2/instance:Instance"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def as_fact(kind: Kind, path: str) -> str:
    """What the stand-in does with a property, in the words of the table."""
    if path in kind.either:
        return "source"
    words = ["replaces"] if path in kind.replaces else []
    if path in kind.defaults:
        value = kind.defaults[path]
        return " ".join([*words, "=", value if isinstance(value, str) else json.dumps(value)])
    undone = path in kind.cleared or path == "tags"
    required = path in shapes.required(kind.token)
    return " ".join(words + (["required"] if required else [] if undone else ["computed"]))


@pytest.mark.parametrize("token", KINDS)
def test_the_stand_in_does_what_the_table_says(token: str) -> None:
    kind, known = KINDS[token], {*KINDS[token].replaces, *KINDS[token].updates}
    facts = {**{name: OF_ALL[name] for name in known & set(OF_ALL)}, **FACTS[token]}
    assert facts.pop("source").startswith("internal/service/")
    assert {path: as_fact(kind, path) for path in sorted(known)} == dict(sorted(facts.items()))


def test_the_table_names_no_other_types() -> None:
    assert set(FACTS) == set(KINDS)


def difference(token: str, before: dict[str, Any], after: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The properties that an update would change, and those of them that need a new resource."""
    state = {**KINDS[token].wanted(before), GIVEN: given(before)}
    urn = f"urn:pulumi:test::project::{token}::x"
    request = wire.DiffRequest(urn, "x", wrapped(state), wrapped(after), [])
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        answer = loop.run_until_complete(StandIn().diff(request))
    return set(answer.diffs or []), set(answer.replaces or [])


MACHINE = {"ami": "ami-1", "instanceType": "m7i.large"}
PORT = {"securityGroupId": "sg-1", "ipProtocol": "tcp", "fromPort": 22, "toPort": 22}


@pytest.mark.parametrize(
    ("token", "before", "after", "changed", "replaces"),
    [
        (INSTANCE, {**MACHINE, "iamInstanceProfile": "mine", "userData": "#!"}, MACHINE, set(), set()),
        (
            INSTANCE,
            {**MACHINE, "iamInstanceProfile": "mine"},
            {**MACHINE, "iamInstanceProfile": ""},
            {"iamInstanceProfile"},
            set(),
        ),
        (INSTANCE, {**MACHINE, "keyName": "mine"}, {**MACHINE, "keyName": "his"}, {"keyName"}, {"keyName"}),
        (RULE, {**PORT, "cidrIpv4": "10.0.0.0/8"}, {**PORT, "cidrIpv4": "10.1.0.0/16"}, {"cidrIpv4"}, set()),
        (
            RULE,
            {**PORT, "cidrIpv4": "10.0.0.0/8"},
            {**PORT, "referencedSecurityGroupId": "sg-2"},
            {"cidrIpv4", "referencedSecurityGroupId"},
            {"cidrIpv4", "referencedSecurityGroupId"},
        ),
        ("aws:efs/fileSystem:FileSystem", {"throughputMode": "elastic"}, {}, {"throughputMode"}, set()),
        (
            "aws:iam/role:Role",
            {"assumeRolePolicy": "{}", "description": "A machine"},
            {"assumeRolePolicy": "{}"},
            {"description"},
            set(),
        ),
    ],
)
def test_what_is_left_out_or_changed(
    token: str, before: dict[str, Any], after: dict[str, Any], changed: set[str], replaces: set[str]
) -> None:
    assert difference(token, before, after) == (changed, replaces)
