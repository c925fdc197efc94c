"""What the stand-in takes as inputs, without an engine."""

import asyncio
import contextlib
from typing import Any

import pytest
from pulumi.provider.experimental import provider as wire
from pulumi.runtime.rpc import UNKNOWN

from tests.box.provider import shapes
from tests.box.provider.kinds import Kind
from tests.box.provider.provider import KINDS, StandIn
from tests.box.provider.values import wrapped


def checked(token: str, **inputs: Any) -> dict[str, str]:
    """What the stand-in has against these inputs: path to sentence."""
    request = wire.CheckRequest(f"urn:pulumi:test::project::{token}::x", {}, wrapped(inputs), b"seed")
    # `asyncio.run` would leave the thread without a loop, and Pulumi's mocks need it.
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        answer = loop.run_until_complete(StandIn().check(request))
    return {failure.property: failure.reason for failure in answer.failures or []}


INSTANCE = "aws:ec2/instance:Instance"


@pytest.mark.parametrize(
    ("inputs", "path", "sentence"),
    [
        ({"amy": "ami-1"}, "amy", "not a property of Instance"),
        ({"ami": 1}, "ami", "str is wanted"),
        ({"rootBlockDevice": {"volumeSize": "8"}}, "rootBlockDevice.volumeSize", "int is wanted"),
        ({"rootBlockDevice": 8}, "rootBlockDevice", "an object is wanted"),
        ({"vpcSecurityGroupIds": ["sg-1", 2]}, "vpcSecurityGroupIds[1]", "str is wanted"),
        ({"ebsBlockDevices": [{"volumeSize": 8}]}, "ebsBlockDevices[0].deviceName", "required"),
        ({"hibernation": True}, "hibernation", "the stand-in does not carry out"),
        (
            {"instanceMarketOptions": {"spotOptions": {"maxPrize": "1"}}},
            "instanceMarketOptions.spotOptions.maxPrize",
            "no",
        ),
    ],
)
def test_refused_inputs(inputs: dict[str, Any], path: str, sentence: str) -> None:
    assert sentence in checked(INSTANCE, **inputs)[path]


def test_accepted_inputs() -> None:
    assert checked(INSTANCE, ami="ami-1", instanceType="t3.small", tags={"a": "b"}) == {}
    assert checked(INSTANCE, ami=UNKNOWN, vpcSecurityGroupIds=[UNKNOWN], rootBlockDevice=UNKNOWN) == {}
    assert "required" in checked("aws:ec2/keyPair:KeyPair")["publicKey"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_names_are_those_of_the_sdk(kind: Kind) -> None:
    named = {path.partition(".")[0] for path in (*kind.replaces, *kind.updates, *kind.cleared)}
    assert named <= shapes.inputs(kind.token)
    assert {output for outputs in kind.moves.values() for output in outputs} <= shapes.outputs(kind.token)
    for name in kind.cleared:
        kind.way(name, {})
