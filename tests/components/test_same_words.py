"""Clusters of one project, stack and name on one computer: the id alone tells them apart."""

import json
from collections.abc import Callable
from dataclasses import replace
from secrets import token_hex

import pytest

from tests.components.conftest import TOKEN, WAITS, Standing
from tests.components.registered import verbs_of
from tfdeploy import registry
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.backends.local.paths import Places
from tfdeploy.paths import cluster_folder
from tfdeploy.report.expected import expected_state

LOGINS = ("file:///of-ada", "https://api.pulumi.com/of-ben")


@pytest.fixture
def ada_and_ben(clusters: Callable[[str], Standing]) -> tuple[Standing, Standing]:
    """Two clusters that run, of two logins."""
    ada, ben = clusters("test"), clusters("of-ben")
    ref = {**ada.cluster, "id": token_hex(5)}
    home = str(ada.places.home.with_name(cluster_folder(ref)))
    ben.cluster = {**ada.cluster, "id": str(ref["id"]), "home": home}
    ben.places = Places(home)
    for cluster, login in zip((ada, ben), LOGINS, strict=True):
        cluster.up(WAITS, ps=1, workers=1)
        expected = expected_state(cluster.plan, cluster.spec)
        registry.write(registry.Entry(cluster.cluster, str(ada.folder), expected, begun=1.0, login=login))
    for cluster in (ada, ben):
        cluster.until_running("ps-0", "worker-0")
    return ada, ben


def test_the_command_lists_both_and_says_that_a_name_is_ambiguous(ada_and_ben: tuple[Standing, Standing]) -> None:
    ada, ben = ada_and_ben
    verbs = verbs_of(ada)
    registry.write(replace(registry.read(registry.path_of(ada.cluster)), login=LOGINS[0]))
    ids = [cluster.cluster["id"] for cluster in (ada, ben)]
    shown = json.loads(verbs.call("show", "--json")[1])
    assert {item["id"]: item["state"] for item in shown} == dict.fromkeys(ids, "running")
    text = verbs.call("show")[1].decode()
    assert all(f"/test ({cluster_id}, stack in {login})" in text for cluster_id, login in zip(ids, LOGINS, strict=True))
    code, _, message = verbs.call("events", "--cluster", "test")
    assert (code, "the stack has several clusters" in message) == (3, True)
    assert all(cluster_id in message for cluster_id in ids)
    for cluster in (ada, ben):
        (shown,) = json.loads(verbs.call("show", "--json", "--cluster", cluster.cluster["id"])[1])
        assert shown["endpoints"]["worker-0"] == cluster.look().endpoints["worker-0"]


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
