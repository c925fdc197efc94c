"""What a cluster's things are called: fit for an engine, and never what another cluster's are called."""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.unit.props import cluster
from tfdeploy.backends.docker import names

SERVICE = re.compile(r"[a-zA-Z0-9]+(?:[a-zA-Z0-9_-]*[a-zA-Z0-9])?")
"""What swarmkit takes for a service's name, with at most 63 characters."""

LONGEST_HOSTNAME = "evaluator-0"

PROJECT = st.from_regex(r"\A[A-Za-z0-9_.-]{1,100}\Z")
NAME = st.from_regex(r"\A[A-Za-z]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\Z")
THREE = st.tuples(PROJECT, PROJECT, NAME)


@pytest.mark.parametrize(
    ("project", "stack", "base"),
    [
        ("project", "dev", "project_dev_mnist"),
        ("my-project", "dev-2", "my-project_dev-2_mnist"),
        ("my.project", "dev", "my-project_dev_mnist-b79f5162"),
        ("a" * 41, "dev", f"{'a' * 41}-d879b9a5"),
    ],
)
def test_a_name_is_readable_where_it_may_be(project: str, stack: str, base: str) -> None:
    assert names.base(cluster(project, stack)) == base


@given(THREE)
@example(("." * 100, "." * 100, "a"))
@example(("_" * 100, "-" * 100, "A" * 40))
def test_every_name_is_one_that_an_engine_takes(three: tuple[str, str, str]) -> None:
    service = names.service(cluster(*three), LONGEST_HOSTNAME)
    assert SERVICE.fullmatch(service)
    assert len(service) <= 63
    assert SERVICE.fullmatch(names.volume(cluster(*three), names.TRAIN))


@given(THREE, THREE)
@example(("a_b", "c", "mnist"), ("a", "b_c", "mnist"))
@example(("a.b", "c", "mnist"), ("a-b", "c", "mnist"))
@example(("." + "a" * 60, "c", "mnist"), ("a" * 60, "c", "mnist"))
def test_two_clusters_never_share_a_name(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assume(one != other)
    assert names.base(cluster(*one)) != names.base(cluster(*other))


def test_everything_of_a_cluster_is_found_by_its_labels() -> None:
    assert names.labels(cluster()) == {
        "tfdeploy.project": "project",
        "tfdeploy.stack": "dev",
        "tfdeploy.cluster": "mnist",
    }
    found = names.filters(cluster("a_b", "c"))
    assert found == {"label": ["tfdeploy.project=a_b", "tfdeploy.stack=c", "tfdeploy.cluster=mnist"]}
    assert found != names.filters(cluster("a", "b_c"))
