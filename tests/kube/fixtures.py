"""The cluster as a fixture: one for a process of the tests, made when the first of them asks for it."""

import os
from collections.abc import Iterator

import pytest

from tests.debian import NotInstalled
from tests.engine.fixtures import WITHOUT
from tests.kube.cluster import Cluster, cluster
from tests.kube.images import archive
from tests.kube.programs import kube as program


@pytest.fixture(scope="session")
def kube() -> Iterator[Cluster]:
    """A Kubernetes with two nodes; it leads nobody there who does not take its `kubeconfig`."""
    if os.environ.get(WITHOUT):
        pytest.skip(f"needs containers, and {WITHOUT} is set")
    try:
        made = cluster(program(), archive())
    except NotInstalled as reason:
        pytest.fail(f"{reason} ({WITHOUT}=1 leaves these tests out)", pytrace=False)
    with made as running:
        yield running
