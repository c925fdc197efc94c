"""What an engine has, by cluster."""

from tests.clusters import cluster_ref
from tfdeploy.backends.discovery import LabelledObject, group_by_cluster, timestamp
from tfdeploy.backends.docker.labels import LABEL_PREFIX, cluster_labels, stack_labels


def engine_labels(name: str) -> dict[str, str]:
    return {**cluster_labels(cluster_ref(name=name, cluster_id=f"id-of-{name}")), "com.docker.stack": "x"}


def test_things_of_an_engine_are_told_by_cluster() -> None:
    found = group_by_cluster(
        "docker",
        "unix:///d.sock",
        LABEL_PREFIX,
        [
            LabelledObject("service", {**engine_labels("b"), **stack_labels(cluster_ref())}, 20.0),
            LabelledObject("image", engine_labels("a"), 0.0),
            LabelledObject("service", engine_labels("b"), 10.0),
        ],
    )
    assert [(one.cluster["name"], one.has, one.since) for one in found] == [
        ("a", {"image": 1}, 0.0),
        ("b", {"service": 2}, 10.0),
    ]
    assert found[0].cluster == cluster_ref(project="?", stack="?", name="a", cluster_id="id-of-a")
    assert found[1].cluster == cluster_ref(name="b", cluster_id="id-of-b")
    assert timestamp("2026-11-21T14:05:11.123456789Z") == 1795269911.0
    assert timestamp(None) == 0.0
