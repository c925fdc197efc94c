"""The identity of a cluster: what the stack's state has of it decides, never the names that people read."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from tests.clusters import ID, OWNER, cluster_ref
from tests.unit import cases
from tfdeploy import identity
from tfdeploy.backends.base import ClusterRef, DiscoveredCluster
from tfdeploy.errors import SpecError
from tfdeploy.identity import Identity, StoredCluster
from tfdeploy.places import StoredPlace
from tfdeploy.plan.inventory import PlaceRef

TYPE = "tfdeploy:index:TensorFlowCluster"
STASH = f"{TYPE}$pulumi:index:Stash"
CLEANUP = f"{TYPE}$pulumi-python:dynamic/tfdeploy:Cleanup"
MINE = Identity(ID, OWNER)
LAPTOP: PlaceRef = {"id": "m1", "name": "laptop"}
DOCKER = StoredPlace("mnist", cluster_ref(home="unix:///d.sock"), LAPTOP, "secret", False, False)


def state(*resources: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {f"urn:pulumi:dev::p::{kind}::{name}": {"outputs": outputs} for kind, name, outputs in resources}


def stash(name: str = "mnist", kind: str = STASH) -> tuple[str, str, dict[str, Any]]:
    return kind, f"{name}-id", {"output": {"id": ID, "owner": OWNER}}


def cleanup(home: str = "unix:///d.sock") -> tuple[str, str, dict[str, Any]]:
    return CLEANUP, "mnist-cleanup", {"cluster": cluster_ref(home=home), "place": LAPTOP, "token": "secret"}


def test_the_state_of_the_stack_has_the_cluster() -> None:
    assert identity.find_stored({}, "mnist", TYPE) is None
    assert identity.find_stored(state(stash()), "mnist", TYPE) == StoredCluster(MINE)
    assert identity.find_stored(state(stash(), cleanup()), "mnist", TYPE) == StoredCluster(MINE, (DOCKER,))


def test_a_component_in_a_component_and_others_of_the_stack_do_not_matter() -> None:
    nested = state(stash(kind=f"my:index:Training${STASH}"), stash("other"), stash("mnist", "pulumi:index:Stash"))
    assert identity.find_stored(nested, "mnist", TYPE) == StoredCluster(MINE)
    assert identity.find_stored(state(stash("mnist", "pulumi:index:Stash")), "mnist", TYPE) is None


def test_a_new_cluster_gets_an_id_that_no_other_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: False)
    drawn = {identity.choose_identity("mnist", None, "").id for _ in range(100)}
    assert len(drawn) == 100
    assert all(re.fullmatch("[a-z0-9]{10}", name) for name in drawn)
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    assert identity.choose_identity("mnist", None, "").id == ""


def test_an_existing_cluster_keeps_its_id_and_its_owner() -> None:
    assert identity.choose_identity("mnist", StoredCluster(MINE), "") == MINE
    assert identity.choose_identity("mnist", StoredCluster(MINE), ID) == MINE


def test_a_cluster_is_adopted_only_by_a_stack_that_has_none() -> None:
    assert identity.choose_identity("mnist", None, ID).id == ID
    with pytest.raises(SpecError, match=f"already has the cluster {ID}, not other12345"):
        identity.choose_identity("mnist", StoredCluster(MINE), "other12345")


def test_a_cluster_is_adopted_once_although_the_argument_remains() -> None:
    def adopted(backend: str) -> list[str]:
        created = replace(DOCKER, cluster=cluster_ref(backend=backend))
        places = ((), (created,), (replace(created, has_network=True),))
        states = (None, *(StoredCluster(MINE, stored) for stored in places))
        return [identity.cluster_to_adopt(stored, ID, backend) for stored in states]

    assert adopted("docker") == [ID, ID, ID, ""], "an interrupted update has not replaced the former network"
    assert adopted("local") == [ID, ID, "", ""]
    moving = StoredCluster(MINE, (replace(DOCKER, cluster=cluster_ref(backend="local")),))
    assert identity.cluster_to_adopt(moving, ID, "docker") == "", "what moves is the cluster's own"


@pytest.mark.parametrize("network", ["mnist-network", "mnist-network-encrypted"])
def test_the_state_has_the_network_of_the_cluster(network: str) -> None:
    def has_network(name: str) -> bool:
        stored = identity.find_stored(
            state(stash(), cleanup(), (f"{TYPE}$docker:index/network:Network", name, {})), "mnist", TYPE
        )
        here = stored.at("docker") if stored else None
        assert here is not None
        return here.has_network

    assert has_network(network)
    assert not has_network(f"other-{network}")


@pytest.mark.parametrize(
    ("single_machine", "home", "place_id", "swarms", "is_refused"),
    [
        (False, "unix:///d.sock", "m1", ("", ""), False),
        (False, "unix:///d.sock", "m2", ("", ""), True),
        (False, "ssh://other", "m2", ("", ""), False),
        (True, "/another/folder", "m2", ("", ""), True),
        (False, "unix:///d.sock", "m2", ("s1", "s1"), True),  # another manager of the same Swarm
        (False, "unix:///d.sock", "m1", ("s1", "s2"), False),  # the engine has left its Swarm and created another
        (False, "unix:///d.sock", "m1", ("", "s1"), False),  # a state of an earlier version
        (False, "unix:///d.sock", "m2", ("", "s1"), True),
        (False, "unix:///d.sock", "m2", ("s1", "s2"), True),
    ],
)
def test_another_machine_or_engine_behind_the_same_address_is_refused(
    single_machine: bool, home: str, place_id: str, swarms: tuple[str, str], is_refused: bool
) -> None:
    spec = cases.spec(workers=1)
    inventory = cases.inventory(
        spec, single_machine=single_machine, place_id=place_id, place_name="desktop", place_swarm=swarms[1]
    )
    place: PlaceRef = {"id": "m1", "name": "laptop", "swarm": swarms[0]}
    stored = StoredCluster(MINE, (replace(DOCKER, place=place),))
    if not is_refused:
        identity.refuse_other_place(cluster_ref(home=home), stored, inventory)
        return
    with pytest.raises(SpecError, match=r"(is|are) on laptop \(m1\), and this is desktop \(m2\)") as refused:
        identity.refuse_other_place(cluster_ref(home=home), stored, inventory)
    is_one_swarm = bool(swarms[0]) and swarms[0] == swarms[1]
    assert ("another manager of its Swarm" in refused.value.wrong) == is_one_swarm
    assert ("removes the cluster from the Swarm" in refused.value.remedy) == is_one_swarm
    assert ("changes nothing here" in refused.value.remedy) != is_one_swarm


def test_the_place_is_that_of_the_inventory() -> None:
    spec = cases.spec(workers=1)
    inventory = cases.inventory(spec, place_id="m1", place_name="laptop", place_swarm="s2")
    assert identity.place_of(inventory) == {"id": "m1", "name": "laptop", "swarm": "s2"}
    assert identity.place_of(replace(inventory, place_swarm="")) == {"id": "m1", "name": "laptop"}


def test_a_cluster_that_a_reader_could_take_for_this_one_is_named() -> None:
    new: ClusterRef = {**cluster_ref(), "id": ""}
    others = [
        DiscoveredCluster(cluster_ref(), {"service": 3}, since=1795269911.0),
        DiscoveredCluster(cluster_ref(stack="prod", cluster_id="another123"), {"service": 3}),
    ]
    (warning,) = identity.others_of_same_name(new, others)
    assert ID in warning
    assert OWNER in warning
    assert "2026-11-21" in warning
    assert identity.others_of_same_name(cluster_ref(), others) == []


def test_a_state_that_is_being_written_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    has = state(stash(), (TYPE, "mnist", {}), (f"my:index:Training${TYPE}", "other", {}))
    read = SimpleNamespace(value={"outputs": has})
    results: list[object] = [Exception("failed to load checkpoint: EOF"), read]

    def invoke(*_: object) -> object:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(identity, "_READ_PAUSE", 0.0)
    monkeypatch.setattr(pulumi.runtime, "invoke", invoke)
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    assert identity.stored_cluster("mnist", TYPE) == StoredCluster(MINE)
    results[:] = [read, SimpleNamespace(value=None), SimpleNamespace(value=None)]
    assert identity.stored_names(TYPE) == ["mnist", "other"]
    assert identity.stored_names(TYPE) == []
    assert identity.stored_cluster("mnist", TYPE) is None
    results[:] = [Exception("another error")]
    with pytest.raises(Exception, match="another error"):
        identity.stored_cluster("mnist", TYPE)
