"""Names on an engine: valid, readable, and different for each cluster."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from tests.clusters import ID, OWNER
from tests.unit.props import cluster
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker.labels import (
    TRAIN_VOLUME,
    cluster_filter,
    cluster_labels,
    name_prefix,
    service_name,
    stack_labels,
    volume_name,
)

SERVICE = re.compile(r"[a-zA-Z0-9]+(?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?")
"""A valid name of a service for swarmkit, if it has at most 63 characters."""

NAME = st.from_regex(r"\A[A-Za-z]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\Z")
CLUSTER_ID = st.from_regex(r"\A[a-z0-9]{10}\Z")


@given(NAME, CLUSTER_ID)
@example("A" * 40, ID)
@example("a" * 38 + "-b", ID)
def test_every_name_is_valid(name: str, cluster_id: str) -> None:
    ref: ClusterRef = {**cluster(name=name), "id": cluster_id}
    service = service_name(ref, "evaluator-0")  # the longest hostname
    assert SERVICE.fullmatch(service)
    assert len(service) <= 63
    assert SERVICE.fullmatch(volume_name(ref, TRAIN_VOLUME))


def test_project_stack_and_name_do_not_decide_what_belongs_to_a_cluster() -> None:
    mine = cluster()
    other: ClusterRef = {**mine, "id": "another123"}
    assert cluster_labels(mine) == {"tfdeploy.cluster": "mnist", "tfdeploy.cluster-id": ID, "tfdeploy.owner": OWNER}
    assert cluster_filter(mine) == {"label": [f"tfdeploy.cluster-id={ID}"]}
    assert cluster_filter(mine) != cluster_filter(other)
    assert cluster_filter({**mine, "id": ""}) == {"label": ["tfdeploy.cluster-id=new"]}, (
        "an empty value matches every id"
    )
    assert name_prefix(mine) != name_prefix(other)
    renamed = cluster(stack="renamed")
    assert (name_prefix(renamed), cluster_labels(renamed)) == (name_prefix(mine), cluster_labels(mine))
    assert stack_labels(renamed) == {"tfdeploy.project": "project", "tfdeploy.stack": "renamed"}
