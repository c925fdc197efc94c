"""What is left over, and what only may be."""

from dataclasses import replace
from typing import Any

import pytest

from tfdeploy.backends.base import Cluster, Found
from tfdeploy.cli.belonging import (
    BUSY,
    KEPT,
    LEFT,
    MARGIN,
    STACK,
    UNKNOWN,
    Answer,
    belonging,
    clusters_of,
    entry_of,
    refusal,
)
from tfdeploy.outline import Outline
from tfdeploy.registry import Entry

CLUSTER: Cluster = {"backend": "docker", "project": "p", "stack": "dev", "name": "mnist", "home": "unix:///d.sock"}
FOUND = Found(CLUSTER, {"service": 2}, since=1.0)
WHERE = "file:///stacks"
ENTRY = Entry(CLUSTER, "/program", Outline(tasks=()), begun=1.0, login=WHERE)
SERVICE = "https://api.pulumi.com"
KEEPS = replace(ENTRY, ended=2.0, options={"keep_volumes": "true"})
HERS = frozenset({("docker", "p", "dev", "mnist")})
LONG_AGO, JUST_NOW = MARGIN + 2.0, MARGIN


def export(*clusters: Cluster) -> dict[str, Any]:
    kind = "pulumi-python:dynamic/tfdeploy:Sweeper"
    resources = [{"type": kind, "inputs": {"cluster": dict(one)}} for one in clusters]
    return {"deployment": {"resources": [{"type": "pulumi:pulumi:Stack"}, *resources]}}


@pytest.mark.parametrize(
    ("entry", "answer", "now", "state"),
    [
        (None, Answer(), LONG_AGO, UNKNOWN),
        (ENTRY, Answer(silent="it is on fire"), LONG_AGO, UNKNOWN),
        (ENTRY, Answer(HERS), LONG_AGO, STACK),
        (ENTRY, Answer(HERS, locked=True), LONG_AGO, STACK),
        (ENTRY, Answer(locked=True), LONG_AGO, BUSY),
        (ENTRY, Answer(missing=True, locked=True), LONG_AGO, BUSY),
        (ENTRY, Answer(), JUST_NOW, BUSY),
        (ENTRY, Answer(missing=True), JUST_NOW, BUSY),
        (ENTRY, Answer(locked=False), JUST_NOW, LEFT),
        (ENTRY, Answer(), LONG_AGO, LEFT),
        (ENTRY, Answer(missing=True), LONG_AGO, LEFT),
        (replace(ENTRY, login=""), Answer(missing=True), LONG_AGO, UNKNOWN),
        (replace(ENTRY, login=""), Answer(), LONG_AGO, UNKNOWN),
        (replace(ENTRY, login=""), Answer(HERS), LONG_AGO, STACK),
        (replace(ENTRY, login=SERVICE, organization="lab"), Answer(missing=True), LONG_AGO, UNKNOWN),
        (replace(ENTRY, login=SERVICE, organization="lab"), Answer(), LONG_AGO, LEFT),
        (replace(ENTRY, login=SERVICE), Answer(), LONG_AGO, UNKNOWN),
    ],
)
def test_only_what_is_known_to_belong_to_none_is_left_over(
    entry: Entry | None, answer: Answer, now: float, state: str
) -> None:
    assert belonging(FOUND, entry, answer, now)[0] == state


@pytest.mark.parametrize(
    ("entry", "has", "answer", "state"),
    [
        (KEEPS, {"volume": 2}, Answer(), KEPT),
        (KEEPS, {"volume": 2}, Answer(silent="it is on fire"), KEPT),
        (KEEPS, {"volume": 2}, Answer(HERS), STACK),
        (KEEPS, {"volume": 2, "network": 1}, Answer(), LEFT),
        (replace(KEEPS, ended=0.0), {"volume": 2}, Answer(), LEFT),
        (replace(KEEPS, options={}), {"volume": 2}, Answer(), LEFT),
        (replace(KEEPS, options={"keep_volumes": "false"}), {"volume": 2}, Answer(), LEFT),
    ],
)
def test_volumes_that_destroy_was_to_leave_are_kept_on_purpose(
    entry: Entry, has: dict[str, int], answer: Answer, state: str
) -> None:
    assert belonging(replace(FOUND, has=has), entry, answer, LONG_AGO)[0] == state


def test_the_clusters_of_a_stack_are_those_that_have_a_sweeper_there() -> None:
    assert clusters_of(export(CLUSTER)) == HERS
    assert clusters_of(export()) == clusters_of({"deployment": None}) == frozenset()


def test_another_state_folders_cluster_is_not_the_one_of_that_name_here() -> None:
    mine: Cluster = {**CLUSTER, "backend": "local", "home": "/state/clusters/p.dev.mnist"}
    theirs: Cluster = {**mine, "home": "/other/clusters/p.dev.mnist"}
    known = [replace(ENTRY, cluster=mine)]
    assert entry_of(mine, known) is known[0]
    assert entry_of(theirs, known) is None
    assert entry_of({**CLUSTER, "home": "tcp://another:1"}, [ENTRY]) is ENTRY


def test_even_who_names_it_may_not_delete_what_may_be_coming() -> None:
    assert refusal(LEFT, "", FOUND, 2.0) == ""
    assert refusal(UNKNOWN, "", FOUND, LONG_AGO) == ""
    assert "9m59s ago" in refusal(UNKNOWN, "", FOUND, 600.0)
    assert refusal(BUSY, "it is locked", FOUND, LONG_AGO) == "it is locked"
    assert "pulumi destroy" in refusal(STACK, "", FOUND, LONG_AGO)
    assert "by hand" in refusal(UNKNOWN, "", replace(FOUND, cluster={**CLUSTER, "home": ""}), LONG_AGO)
