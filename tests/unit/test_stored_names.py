"""Names in stored states are frozen from 1.0.0 on; what an earlier version has stored is refused, and nothing of it is deleted."""

from importlib import import_module
from typing import Any

import pytest
from pulumi.dynamic import Resource

from tests.clusters import cluster_ref
from tfdeploy import identity, resources
from tfdeploy.cluster import TYPE
from tfdeploy.errors import SpecError

PROVIDERS = {
    "Cleanup": "tfdeploy.resources CleanupProvider",
    "Task": "tfdeploy.resources TaskProvider",
    "Run": "tfdeploy.resources RunProvider",
    "Image": "tfdeploy.backends.docker.requirements_image RequirementsImageProvider",
    "RecordBucket": "tfdeploy.backends.ec2.record_bucket RecordBucketProvider",
    "SshKey": "tfdeploy.backends.ec2.ssh_key SshKeyProvider",
    "Swarm": "tfdeploy.backends.ec2.swarm SwarmProvider",
    "PodObjects": "tfdeploy.backends.kubernetes.resources PodObjectsProvider",
}
"""Type of each dynamic resource to the module and the class of its provider, both of which states have."""


def test_dynamic_resources_have_the_types_and_providers_that_states_have() -> None:
    assert TYPE == "tfdeploy:index:TensorFlowCluster"
    for module, name in map(str.split, PROVIDERS.values()):
        assert hasattr(import_module(module), name)
    ours = [item for item in Resource.__subclasses__() if item.__module__.startswith("tfdeploy.")]
    assert {item._resource_type_name for item in ours} == {f"dynamic/tfdeploy:{name}" for name in PROVIDERS}


@pytest.mark.parametrize("provider", [resources.CleanupProvider, resources.TaskProvider, resources.RunProvider])
def test_a_state_of_an_earlier_version_is_refused_and_nothing_of_it_is_deleted(
    monkeypatch: pytest.MonkeyPatch, provider: Any
) -> None:
    monkeypatch.setattr(resources, "load", lambda _: pytest.fail("nothing is done"))
    props = {"cluster": cluster_ref(), "place": {"id": "m1", "name": "laptop"}, "hostname": "worker-0"}
    message = "written by a version of tfdeploy before 1.0.0, .* Destroy it with the version that made it"
    with pytest.raises(SpecError, match=message):
        provider().check(props, identity.with_format(props))
    with pytest.raises(SpecError, match=message):
        provider().delete("", props)
    urn = "urn:pulumi:dev::p::{}::{}".format
    stash = {"output": {"id": cluster_ref()["id"], "owner": "somebody"}}
    state = {
        urn(f"{TYPE}$pulumi:index:Stash", "mnist-id"): {"outputs": stash},
        urn(f"{TYPE}$pulumi-python:dynamic/tfdeploy:Cleanup", "mnist-cleanup"): {"outputs": props},
    }
    with pytest.raises(SpecError, match=message):
        identity.find_stored(state, "mnist", TYPE)
