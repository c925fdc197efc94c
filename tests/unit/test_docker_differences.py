"""What a plan changes in services that stand, in words."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import BOX, plan, spec
from tests.unit.props import task_props
from tfdeploy.backends.docker.differences import sentences, unshared
from tfdeploy.backends.docker.mounts import bind
from tfdeploy.backends.docker.services import task
from tfdeploy.placement import Machine
from tfdeploy.plan import Given, make_plan

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


MACHINES = [replace(BOX, name=name) for name in ("m0", "m1")]
NOT_SHARED = "train_dir is not given, so each machine has a volume of its own"
SHARE = "Name a folder that all machines share"
FOUND = f"{NOT_SHARED}, and who starts again finds only what was saved on its machine. {SHARE}"
APART = f"{NOT_SHARED}: checkpoints of tasks on other machines than the first are not together. {SHARE}"


@pytest.mark.parametrize(
    ("workers", "machines", "standing", "warned"),
    [
        (1, MACHINES, {}, []),
        (2, MACHINES, {}, [APART]),
        (2, MACHINES, {"worker-0": "m0", "worker-1": "m1"}, [APART]),
        (2, MACHINES, {"worker-0": "m0"}, [f"worker-1 comes to m1: {FOUND}"]),
        (1, MACHINES, {"worker-0": "m0", "worker-1": "m1"}, [f"worker-1 goes from m1: {FOUND}"]),
        (1, MACHINES[1:], {"worker-0": "m0"}, [f"worker-0 moves from m0 to m1: {FOUND}"]),
        (2, MACHINES[:1], {"worker-0": "m0"}, []),
        (1, MACHINES[:1], {"worker-0": "m0", "worker-1": "m0"}, []),
    ],
)
def test_checkpoints_that_are_not_shared_are_warned_of(
    workers: int, machines: list[Machine], standing: dict[str, str], warned: list[str]
) -> None:
    asked = spec(workers=workers)
    assert unshared(make_plan(asked, machines, Given("", "/train", ""), standing), standing) == warned
