"""What a plan changes in services that stand, in words."""

from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.props import task_props
from tfdeploy.backends.docker.differences import sentences
from tfdeploy.backends.docker.mounts import bind
from tfdeploy.backends.docker.services import task

ONE_AT_A_TIME = "their containers are replaced, while they run one at a time"


def told(container: dict[str, Any], **arguments: Any) -> list[str]:
    """The sentences for a worker that stands as `task_props` has it, under a plan with these changes."""
    made = task(task_props(hostname="worker-0", index=0))
    standing = {"worker-0": {"Spec": {"Labels": dict(made.labels), "TaskTemplate": dict(made.template)}}}
    now = {**task_props()["container"], **container}
    return sentences(plan(workers=1, **arguments), {"worker-0": now}, standing)


def test_nothing_changes_nothing() -> None:
    assert told({}) == []
    assert sentences(plan(workers=1), {"worker-0": task_props()["container"]}, {}) == []


@pytest.mark.parametrize(
    ("container", "arguments", "words"),
    [
        ({"image": "mine:2"}, {}, "image changes"),
        ({"user": "1000"}, {}, "user changes"),
        ({"mounts": [bind("/data", "/data", True)]}, {}, "volumes changes"),
        ({"shm_size": 1 << 30}, {}, "shm_size changes"),
        ({}, {"jobs": {"worker": {"memory": "1GiB"}}}, "memory changes"),
        ({}, {"jobs": {"worker": {"cpus": 2}}}, "cpus changes"),
        ({"user": "0"}, {"jobs": {"worker": {"cpus": 2}}}, "user, cpus change"),
    ],
)
def test_a_change_is_named(container: dict[str, Any], arguments: dict[str, Any], words: str) -> None:
    assert told(container, **arguments) == [f"worker-0: {words}: {ONE_AT_A_TIME}"]


def test_another_network_replaces_all_at_once() -> None:
    assert told({"network": "host"}) == ["worker-0: network changes: all are replaced at once, and resume"]
