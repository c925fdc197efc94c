"""What has our marks becomes clusters, whatever it is."""

import json
from pathlib import Path

from tests.clusters import ID, OWNER, cluster_ref
from tfdeploy.backends.discovery import LabelledObject, group_by_cluster, timestamp
from tfdeploy.backends.docker.labels import LABEL_PREFIX, cluster_labels, stack_labels
from tfdeploy.backends.ec2 import discover as ec2
from tfdeploy.backends.ec2.costs import Amount
from tfdeploy.backends.ec2.discover import TaggedResource
from tfdeploy.backends.local import discover as local

TAGS = {"cluster-id": ID, "owner": OWNER, "project": "p", "stack": "dev", "cluster": "mnist"}
TAGGED = {f"tfdeploy:{key}": value for key, value in TAGS.items()}


def labels(name: str) -> dict[str, str]:
    return {**cluster_labels(cluster_ref(name=name, cluster_id=f"id-of-{name}")), "com.docker.stack": "x"}


def test_things_of_an_engine_are_told_by_cluster() -> None:
    found = group_by_cluster(
        "docker",
        "unix:///d.sock",
        LABEL_PREFIX,
        [
            LabelledObject("service", {**labels("b"), **stack_labels(cluster_ref())}, 20.0),
            LabelledObject("image", labels("a"), 0.0),
            LabelledObject("service", labels("b"), 10.0),
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


def test_things_of_a_region_have_a_price() -> None:
    machine = TaggedResource("instance", TAGGED, 5.0, Amount(0.1))
    disk = TaggedResource("volume", TAGGED, 4.0, Amount(0.02))
    (found,) = ec2.grouped("us-east-1", [machine, disk])
    assert (found.has, found.since, found.per_hour) == ({"instance": 1, "volume": 1}, 4.0, 0.12)
    assert found.cluster == cluster_ref("ec2", f"ec2://us-east-1/mnist-{ID}")
    (found,) = ec2.grouped("us-east-1", [machine, TaggedResource("volume", TAGGED, 4.0, Amount(unknown=("x",)))])
    assert found.per_hour is None


def test_a_folder_tells_the_cluster(state_folder: Path) -> None:
    folder = f"/s/clusters/my-cluster-{ID}"
    assert local.cluster_of(folder) == {**cluster_ref("local", folder, "?", "?", "my-cluster"), "owner": ""}
    home = state_folder / f"tfdeploy/clusters/mnist-{ID}"
    home.mkdir(parents=True)
    cluster = cluster_ref("local", str(home))
    (home / "cluster.json").write_text(json.dumps(cluster))
    assert local.cluster_of(str(home)) == cluster
    (found,) = [one for one in local.discover_clusters() if one.cluster["home"] == str(home)]
    assert (found.has, found.since > 0) == ({"folder": 1}, True)
