"""Which resources of a stack are those of a cluster: a preview that cannot plan it registers them as they are."""

from collections.abc import Sequence

import pytest

from tfdeploy.cluster import TYPE
from tfdeploy.program import stored_resources
from tfdeploy.program.stored_resources import StoredResource, find_resources

TASK = "pulumi-python:dynamic/tfdeploy:Task"


def urn(types: Sequence[str], name: str) -> str:
    return f"urn:pulumi:dev::project::{'$'.join(types)}::{name}"


URNS = [
    urn([TYPE], "mnist"),
    urn([TYPE], "mnist-gpu"),
    urn([TYPE, TASK], "mnist-worker-0"),
    urn([TYPE, TASK], "mnist-gpu-worker-0"),
    urn(["my:index:Group", TYPE, "pulumi:index:Stash"], "mnist-id"),
    urn([TASK], "mnist-worker-1"),
    urn(["aws:ec2/vpc:Vpc"], "mnist-vpc"),
]


def test_the_resources_of_a_cluster_are_found_although_another_name_begins_alike() -> None:
    assert find_resources(URNS, "mnist", TYPE) == [
        StoredResource(TASK, "mnist-worker-0"),
        StoredResource("pulumi:index:Stash", "mnist-id"),
    ]
    assert find_resources(URNS, "mnist-gpu", TYPE) == [StoredResource(TASK, "mnist-gpu-worker-0")]
    assert find_resources(URNS, "other", TYPE) == []


@pytest.mark.parametrize(
    "others", [["aws:ec2/instance:Instance"], ["pulumi:providers:docker", "pulumi:providers:docker"]]
)
def test_where_one_cannot_be_registered_none_is(others: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    urns = [*URNS, *(urn([TYPE, kind], f"mnist-{number}") for number, kind in enumerate(others))]
    monkeypatch.setattr(stored_resources, "stored_urns", lambda: urns)
    assert not stored_resources.register_stored("mnist", TYPE, None)  # type: ignore[arg-type]
