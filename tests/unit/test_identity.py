"""The identity of a cluster: what the stack's state has of it decides, never the names that people read."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from tests.clusters import ID, OWNER, cluster_ref
from tfdeploy import identity
from tfdeploy.backends.backend import load
from tfdeploy.backends.base import ClusterRef, DiscoveredCluster
from tfdeploy.errors import SpecError
from tfdeploy.identity import Identity, StoredCluster, StoredPlace, resource_prefix
from tfdeploy.plan.inventory import PlaceRef

TYPE = "tfdeploy:index:TensorFlowCluster"
STASH = f"{TYPE}$pulumi:index:Stash"
CLEANUP, RUN = (f"{TYPE}$pulumi-python:dynamic/tfdeploy:{kind}" for kind in ("Cleanup", "Run"))
NETWORK = f"{TYPE}$docker:index/network:Network"
MINE = Identity(ID, OWNER)
LAPTOP: PlaceRef = {"id": "m1", "name": "laptop"}
DOCKER = StoredPlace("mnist", cluster_ref(home="unix:///d.sock"), LAPTOP, "secret", frozenset({"cleanup", "id"}))


def state(*resources: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {f"urn:pulumi:dev::p::{kind}::{name}": {"outputs": outputs} for kind, name, outputs in resources}


def stash(name: str = "mnist", kind: str = STASH) -> tuple[str, str, dict[str, Any]]:
    return kind, f"{name}-id", {"output": {"id": ID, "owner": OWNER}}


def cleanup(home: str = "unix:///d.sock") -> tuple[str, str, dict[str, Any]]:
    return (
        CLEANUP,
        "mnist-cleanup",
        {"cluster": cluster_ref(home=home), "place": LAPTOP, "token": "secret", **identity.with_format({})},
    )


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
        places = ((), (created,), (replace(created, resources=frozenset({"cleanup", "network"})),))
        states = (None, *(StoredCluster(MINE, stored) for stored in places))
        completed_by = load(backend).adoption_completed_by
        return [identity.cluster_to_adopt(stored, ID, backend, completed_by) for stored in states]

    assert adopted("docker") == [ID, ID, ID, ""], "an interrupted update has not replaced the former network"
    assert adopted("local") == [ID, ID, "", ""]
    moving = StoredCluster(MINE, (replace(DOCKER, cluster=cluster_ref(backend="local")),))
    assert identity.cluster_to_adopt(moving, ID, "docker", frozenset({"network"})) == "", (
        "what moves is the cluster's own"
    )


@pytest.mark.parametrize(
    ("backend", "home", "place_id", "swarms", "is_refused"),
    [
        ("docker", "unix:///d.sock", "m1", ("", ""), False),
        ("docker", "unix:///d.sock", "m2", ("", ""), True),
        ("docker", "ssh://other", "m2", ("", ""), False),
        ("local", "/another/folder", "m2", ("", ""), True),
        ("docker", "unix:///d.sock", "m2", ("s1", "s1"), True),  # another manager of the same Swarm
        ("docker", "unix:///d.sock", "m1", ("s1", "s2"), False),  # the engine has left its Swarm and created another
        ("docker", "unix:///d.sock", "m1", ("", "s1"), False),  # a state of an earlier version
        ("docker", "unix:///d.sock", "m2", ("s1", "s2"), True),
    ],
)
def test_another_machine_or_engine_behind_the_same_address_is_refused(
    backend: str, home: str, place_id: str, swarms: tuple[str, str], is_refused: bool
) -> None:
    former: PlaceRef = {"id": "m1", "name": "laptop", "swarm": swarms[0]}
    place: PlaceRef = {"id": place_id, "name": "desktop", "swarm": swarms[1]}
    stored = StoredCluster(MINE, (replace(DOCKER, cluster=cluster_ref(backend, "unix:///d.sock"), place=former),))
    if not is_refused:
        identity.refuse_other_place(load(backend), cluster_ref(backend, home), stored, place)
        return
    with pytest.raises(SpecError, match=r"(is|are) on laptop \(m1\), and this is desktop \(m2\)") as refused:
        identity.refuse_other_place(load(backend), cluster_ref(backend, home), stored, place)
    is_one_swarm = bool(swarms[0]) and swarms[0] == swarms[1]
    assert ("another manager of its Swarm" in refused.value.wrong) == is_one_swarm
    assert ("removes the cluster from the Swarm" in refused.value.remedy) == is_one_swarm
    assert ("changes nothing here" in refused.value.remedy) != is_one_swarm


@pytest.mark.parametrize(
    ("place_id", "wrong"),
    [
        ("", "is in the namespace 'team', which https://k does not have, or you may not read it"),
        ("u2", "is on https://k team (u1), and this is https://k team (u2)"),
    ],
)
def test_a_namespace_that_is_gone_is_not_taken_for_another_place(place_id: str, wrong: str) -> None:
    cluster = cluster_ref("kubernetes", "team@https://k")
    former, place = (PlaceRef(id=id_, name="https://k team") for id_ in ("u1", place_id))
    stored = StoredCluster(MINE, (replace(DOCKER, cluster=cluster, place=former),))
    with pytest.raises(SpecError) as refused:
        identity.refuse_other_place(load("kubernetes"), cluster, stored, place)
    assert wrong in refused.value.wrong


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


def place(prefix: str, backend: str) -> StoredPlace:
    return StoredPlace(prefix, cluster_ref(backend), LAPTOP, "secret", frozenset({"cleanup"}))


def outputs(backend: str, **changed: Any) -> dict[str, Any]:
    return {
        **identity.with_format({}),
        "cluster": {**cluster_ref(backend), **changed},
        "place": LAPTOP,
        "token": "secret",
    }


@pytest.mark.parametrize(
    ("places", "backend", "prefix"),
    [
        ([], "local", "mnist"),
        ([place("mnist", "local")], "local", "mnist"),
        ([place("mnist", "local")], "docker", "mnist-docker"),
        ([place("mnist", "local"), place("mnist-docker", "docker")], "docker", "mnist-docker"),
        ([place("mnist", "local"), place("mnist-docker", "docker")], "local", "mnist"),
        ([place("mnist-docker", "docker")], "docker", "mnist-docker"),
        ([place("mnist-docker", "docker")], "local", "mnist"),
        ([place("mnist", "local"), place("mnist-docker", "docker")], "ec2", "mnist-ec2"),
    ],
)
def test_a_place_keeps_its_prefix_and_a_new_one_takes_the_name_if_it_is_free(
    places: list[StoredPlace], backend: str, prefix: str
) -> None:
    assert resource_prefix("mnist", backend, places, lambda: ["mnist"]) == prefix


def test_the_places_of_a_cluster_are_found_by_its_cleanups() -> None:
    resources = [
        stash(),
        (CLEANUP, "mnist-cleanup", outputs("local")),
        (RUN, "mnist-run", {}),
        (CLEANUP, "mnist-docker-cleanup", outputs("docker")),
        (NETWORK, "mnist-docker-network", {}),
        (NETWORK, "mnist-two-network", {}),
        (CLEANUP, "mnist-ec2-cleanup", outputs("ec2", id="another123")),
        (CLEANUP, "mnist-two-cleanup", outputs("docker")),
        (CLEANUP, "other-cleanup", outputs("docker", name="other")),
    ]
    found = identity.find_stored(state(*resources), "mnist", TYPE)
    assert found is not None
    local, docker = found.places
    assert replace(local, resources=docker.resources) == replace(place("mnist", "local"), resources=docker.resources)
    assert local.resources & {"run", "network"} == {"run"}
    assert docker == replace(place("mnist-docker", "docker"), resources=frozenset({"cleanup", "network"}))


def test_the_name_of_another_cluster_is_no_prefix() -> None:
    with pytest.raises(SpecError, match="this stack has a cluster 'mnist-docker'"):
        resource_prefix("mnist", "docker", [place("mnist", "local")], lambda: ["mnist", "mnist-docker"])
