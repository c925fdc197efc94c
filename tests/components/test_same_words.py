"""Clusters of one project, stack and name on one computer: the id alone tells them apart."""

import json

from tests.components.conftest import TOKEN, WAITS, Standing
from tfdeploy.backends.local.backend import BACKEND


def test_a_computer_with_the_same_home_folder_touches_nothing_of_another_ones_cluster(
    cluster: Standing,
) -> None:
    cluster.up(WAITS, workers=1)
    cluster.until_running("worker-0")
    identity = cluster.places.identity
    own = identity.read_text()
    identity.write_text(json.dumps({**json.loads(own), "machine": "0123456789abcdef0123456789abcdef"}))
    try:
        BACKEND.runner.stop_run(cluster.run_props())
        BACKEND.runner.delete_task(cluster.task_props("worker-0"))
        BACKEND.runner.delete_unlisted(cluster.cluster, TOKEN, [])
        assert "is on another computer (machine id 0123456789abcdef" in cluster.clear()
        assert cluster.status("worker-0") == "running"
    finally:
        identity.write_text(own)
    cluster.open()
    cluster.until_state("succeeded")
