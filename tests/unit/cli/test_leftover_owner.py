"""What is left over, and what only may be."""

from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import ID, cluster_ref
from tfdeploy.backends.base import ClusterRef, DiscoveredCluster
from tfdeploy.cli.leftover_owner import (
    BUSY,
    IN_STACK,
    LEFTOVER,
    MARGIN_SECONDS,
    RETAINED,
    UNKNOWN,
    ClusterKey,
    Ownership,
    StackState,
    clusters_in,
    entry_of,
    ownership,
    reason_not_to_delete,
)
from tfdeploy.registry import Entry
from tfdeploy.report.expected_state import ExpectedState

CLUSTER = cluster_ref()
FOUND = DiscoveredCluster(CLUSTER, {"service": 2}, since=1.0)
WHERE = "file:///stacks"
ENTRY = Entry(CLUSTER, "/program", ExpectedState(tasks=()), begun=1.0, login=WHERE)
SERVICE = "https://api.pulumi.com"
KEEPS = replace(ENTRY, ended=2.0, options={"container": '{"retain_volumes": true}'})
HERS = frozenset({ClusterKey("docker", ID)})
LONG_AGO, JUST_NOW = MARGIN_SECONDS + 2.0, MARGIN_SECONDS


def export(*clusters: ClusterRef) -> dict[str, Any]:
    kind = "pulumi-python:dynamic/tfdeploy:Cleanup"
    resources = [{"type": kind, "inputs": {"cluster": dict(one)}} for one in clusters]
    return {"deployment": {"resources": [{"type": "pulumi:pulumi:Stack"}, *resources]}}


@pytest.mark.parametrize(
    ("entry", "stack", "now", "state"),
    [
        (None, StackState(), LONG_AGO, UNKNOWN),
        (ENTRY, StackState(error="it is on fire"), LONG_AGO, UNKNOWN),
        (ENTRY, StackState(HERS), LONG_AGO, IN_STACK),
        (ENTRY, StackState(HERS, locked=True), LONG_AGO, IN_STACK),
        (ENTRY, StackState(locked=True), LONG_AGO, BUSY),
        (ENTRY, StackState(missing=True, locked=True), LONG_AGO, BUSY),
        (ENTRY, StackState(), JUST_NOW, BUSY),
        (ENTRY, StackState(missing=True), JUST_NOW, BUSY),
        (ENTRY, StackState(locked=False), JUST_NOW, LEFTOVER),
        (ENTRY, StackState(), LONG_AGO, LEFTOVER),
        (ENTRY, StackState(missing=True), LONG_AGO, LEFTOVER),
        (replace(ENTRY, login=""), StackState(missing=True), LONG_AGO, UNKNOWN),
        (replace(ENTRY, login=""), StackState(), LONG_AGO, UNKNOWN),
        (replace(ENTRY, login=""), StackState(HERS), LONG_AGO, IN_STACK),
        (replace(ENTRY, login=SERVICE, organization="lab"), StackState(missing=True), LONG_AGO, UNKNOWN),
        (replace(ENTRY, login=SERVICE, organization="lab"), StackState(), LONG_AGO, LEFTOVER),
        (replace(ENTRY, login=SERVICE), StackState(), LONG_AGO, UNKNOWN),
    ],
)
def test_only_what_is_known_to_belong_to_none_is_left_over(
    entry: Entry | None, stack: StackState, now: float, state: str
) -> None:
    assert ownership(FOUND, entry, stack, now).state == state


@pytest.mark.parametrize(
    ("entry", "has", "stack", "state"),
    [
        (KEEPS, {"volume": 2}, StackState(), RETAINED),
        (KEEPS, {"volume": 2}, StackState(error="it is on fire"), RETAINED),
        (KEEPS, {"volume": 2}, StackState(HERS), IN_STACK),
        (KEEPS, {"volume": 2, "network": 1}, StackState(), LEFTOVER),
        (replace(KEEPS, ended=0.0), {"volume": 2}, StackState(), LEFTOVER),
        (replace(KEEPS, options={}), {"volume": 2}, StackState(), RETAINED),
        (replace(KEEPS, options={"container": '{"retain_volumes": false}'}), {"volume": 2}, StackState(), LEFTOVER),
    ],
)
def test_volumes_that_destroy_was_to_leave_are_kept_on_purpose(
    entry: Entry, has: dict[str, int], stack: StackState, state: str
) -> None:
    assert ownership(FOUND._replace(has=has), entry, stack, LONG_AGO).state == state


def test_the_clusters_in_a_stack_are_those_that_have_a_cleanup_there() -> None:
    assert clusters_in(export(CLUSTER)) == HERS
    assert clusters_in(export()) == clusters_in({"deployment": None}) == frozenset()


@pytest.mark.parametrize(("since", "state"), [(1.0, LEFTOVER), (2.5, UNKNOWN)])
def test_what_was_created_after_ones_own_was_destroyed_is_somebody_elses(since: float, state: str) -> None:
    destroyed, keeps = replace(ENTRY, ended=2.0), replace(KEEPS, ended=2.0)
    assert ownership(FOUND._replace(since=since), destroyed, StackState(), LONG_AGO).state == state
    volumes = FOUND._replace(since=since, has={"volume": 1})
    assert ownership(volumes, keeps, StackState(), LONG_AGO).state == (RETAINED if state == LEFTOVER else UNKNOWN)


def test_another_state_folders_cluster_is_not_the_one_of_that_name_here() -> None:
    mine: ClusterRef = {**CLUSTER, "backend": "local", "home": "/state/clusters/p.dev.mnist"}
    theirs: ClusterRef = {**mine, "home": "/other/clusters/p.dev.mnist"}
    known = [replace(ENTRY, cluster=mine)]
    assert entry_of(mine, known) is known[0]
    assert entry_of(theirs, known) is None
    assert entry_of({**CLUSTER, "home": "tcp://another:1"}, [ENTRY]) is None
    assert entry_of(CLUSTER, [ENTRY]) is ENTRY


def test_even_who_names_it_may_not_delete_what_may_be_coming() -> None:
    assert reason_not_to_delete(Ownership(LEFTOVER, ""), FOUND, 2.0) == ""
    assert reason_not_to_delete(Ownership(UNKNOWN, ""), FOUND, LONG_AGO) == ""
    assert "9m59s ago" in reason_not_to_delete(Ownership(UNKNOWN, ""), FOUND, 600.0)
    assert reason_not_to_delete(Ownership(BUSY, "it is locked"), FOUND, LONG_AGO) == "it is locked"
    assert "pulumi destroy" in reason_not_to_delete(Ownership(IN_STACK, ""), FOUND, LONG_AGO)
    assert "by hand" in reason_not_to_delete(
        Ownership(UNKNOWN, ""), FOUND._replace(cluster={**CLUSTER, "home": ""}), LONG_AGO
    )
