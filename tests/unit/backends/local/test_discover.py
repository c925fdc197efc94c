"""The clusters whose folders are in the state folder."""

import json
from pathlib import Path

from tests.clusters import ID, cluster_ref
from tfdeploy.backends.local import discover


def test_a_folder_tells_the_cluster(state_folder: Path) -> None:
    folder = f"/s/clusters/my-cluster-{ID}"
    assert discover.cluster_of(folder) == {**cluster_ref("local", folder, "?", "?", "my-cluster"), "owner": ""}
    home = state_folder / f"tfdeploy/clusters/mnist-{ID}"
    home.mkdir(parents=True)
    cluster = cluster_ref("local", str(home))
    (home / "cluster.json").write_text(json.dumps(cluster))
    assert discover.cluster_of(str(home)) == cluster
    (found,) = [one for one in discover.discover_clusters() if one.cluster["home"] == str(home)]
    assert (found.has, found.since > 0) == ({"folder": 1}, True)
