"""When a Swarm is formed, and when it is updated."""

from typing import Any, cast

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER, PS, instance
from tfdeploy.backends.ec2 import cleanup
from tfdeploy.backends.ec2.aws import api
from tfdeploy.backends.ec2.machine.boot import Member
from tfdeploy.backends.ec2.machine.model import MachineState
from tfdeploy.backends.ec2.swarm import SwarmProvider, _terminate_unlisted


def test_a_swarm_is_formed_after_ec2_has_terminated_what_no_longer_belongs_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tasks of a machine that AWS is ending start on another one only then."""
    ending = instance("mnist-worker-m0", instance_id="i-old", state="shutting-down")
    asked: list[str] = []
    waited: list[str] = []

    def instances(region: str, tags: dict[str, str], states: list[str], known: list[str]) -> list[MachineState]:
        asked.extend(states)
        return [PS, ending]

    monkeypatch.setattr(api, "instances", instances)
    monkeypatch.setattr(cleanup, "terminate", lambda region, ids: waited.extend(ids))
    _terminate_unlisted(CLUSTER, [cast(Member, {"instance_id": PS.instance_id})])
    assert "shutting-down" in asked
    assert waited == ["i-old"]


def test_a_colleagues_key_is_one_update_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def form(props: Any, previous: Any, keys: list[str], log: Any) -> dict[str, str]:
        given.append(keys)
        return {"swarm": "s", "manager": "m"}

    monkeypatch.setattr("tfdeploy.backends.ec2.swarm.form", form)
    provider = SwarmProvider()
    alice: dict[str, Any]
    bob: dict[str, Any]
    alice, bob = ({"cluster": CLUSTER, "members": [], "public_key": name, "lifetime": 1.0} for name in ("alice", "bob"))
    state = dict(provider.create(dict(alice)).outs or {})
    assert not provider.diff("", state, dict(alice)).changes
    assert provider.diff("", state, dict(bob)).changes
    state = dict(provider.update("", state, dict(bob)).outs or {})
    assert given == [["alice"], ["alice", "bob"]]
    users: list[dict[str, Any]] = [alice, bob]
    for user in users:
        assert not provider.diff("", state, dict(user)).changes
        assert provider.diff("", state, {**user, "lifetime": 2.0}).changes
