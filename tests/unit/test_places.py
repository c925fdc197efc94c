"""Where the state of a stack has a cluster, and what the names of its resources begin with."""

from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import ID, cluster_ref
from tfdeploy.errors import SpecError
from tfdeploy.places import StoredPlace, find_places, refuse_taken_prefix, resource_prefix
from tfdeploy.plan.inventory import PlaceRef

TYPE = "tfdeploy:index:TensorFlowCluster"
CLEANUP, RUN = (f"{TYPE}$pulumi-python:dynamic/tfdeploy:{kind}" for kind in ("Cleanup", "Run"))
NETWORK = f"{TYPE}$docker:index/network:Network"
HERE: PlaceRef = {"id": "m1", "name": "laptop"}


def place(prefix: str, backend: str) -> StoredPlace:
    return StoredPlace(prefix, cluster_ref(backend), HERE, "", False, False)


def outputs(backend: str, **changed: Any) -> dict[str, Any]:
    return {"cluster": {**cluster_ref(backend), **changed}, "place": HERE, "token": "secret"}


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
    assert resource_prefix("mnist", backend, places) == prefix


def test_the_places_of_a_cluster_are_found_by_its_cleanups() -> None:
    by_name = {
        (CLEANUP, "mnist-cleanup"): outputs("local"),
        (RUN, "mnist-run"): {},
        (CLEANUP, "mnist-docker-cleanup"): outputs("docker"),
        (NETWORK, "mnist-docker-network"): {},
        (CLEANUP, "mnist-ec2-cleanup"): outputs("ec2", id="another123"),
        (CLEANUP, "mnist-two-cleanup"): outputs("docker"),
        (CLEANUP, "other-cleanup"): outputs("docker", name="other"),
    }
    local = replace(place("mnist", "local"), token="secret", has_run=True)
    docker = replace(place("mnist-docker", "docker"), token="secret", has_network=True)
    assert find_places(by_name, "mnist", TYPE, ID) == (local, docker)


def test_the_name_of_another_cluster_is_no_prefix() -> None:
    refuse_taken_prefix("mnist", "mnist", ["mnist", "mnist-docker"])
    refuse_taken_prefix("mnist", "mnist-docker", ["mnist"])
    with pytest.raises(SpecError, match="this stack has a cluster 'mnist-docker'"):
        refuse_taken_prefix("mnist", "mnist-docker", ["mnist", "mnist-docker"])
