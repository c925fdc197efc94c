"""What a plan changes in existing services, and the warnings about checkpoints."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import BOX, inventory, plan, spec
from tests.unit.props import task_props
from tfdeploy.backends.docker.planner import service_changes
from tfdeploy.backends.docker.swarm.services import ContainerSettings, task_service
from tfdeploy.backends.docker.validate import checkpoint_warnings
from tfdeploy.backends.docker.volumes import bind
from tfdeploy.plan.plan import make_plan
from tfdeploy.plan.scheduler import Machine

SETTINGS = ContainerSettings.from_dict(task_props()["container"])


def service(hostname: str = "worker-0") -> dict[str, Any]:
    """The existing service of a worker, as `task_props` has it."""
    desired = task_service(task_props(hostname=hostname))
    return {"Spec": {"Labels": dict(desired.labels), "TaskTemplate": dict(desired.template)}}


def change_lines(container: dict[str, Any], **arguments: Any) -> list[str]:
    """What changes of a worker under a plan with these arguments, as a preview prints it."""
    containers = {"worker-0": replace(SETTINGS, **container)}
    return [
        str(change) for change in service_changes(plan(workers=1, **arguments), containers, {"worker-0": service()})
    ]


def test_without_a_change_there_is_no_line() -> None:
    assert change_lines({}) == []
    assert service_changes(plan(workers=1), {"worker-0": replace(SETTINGS, user="0")}, {}) == ()


@pytest.mark.parametrize(
    ("container", "worker", "change"),
    [
        ({"mounts": (bind("/data", "/data", True),)}, {}, "volumes none -> /data:/data:ro"),
        ({"shm_size": 1 << 30}, {}, "shm_size none -> 1 GiB"),
        ({}, {"memory": "1GiB"}, "memory none -> 1 GiB"),
        ({}, {"nice": 5}, "nice none -> 5"),
    ],
)
def test_a_change_has_the_value_before_and_after(
    container: dict[str, Any], worker: dict[str, Any], change: str
) -> None:
    """The snapshot of previews has those of image, user, cpus and network."""
    (line,) = change_lines(container, jobs={"worker": worker})
    assert line.startswith(f"~ worker-0  {change}  (")


MACHINES = [replace(BOX, name=name) for name in ("m0", "m1")]
REASON = "train_dir is not set, so each machine has its own volume for checkpoints"
REMEDY = "Set train_dir to a folder that all machines share"
MOVES = f"{REASON}, and a task that restarts finds only the checkpoints of its machine. {REMEDY}"
SEVERAL = f"{REASON}, and no machine has all checkpoints. {REMEDY}"


@pytest.mark.parametrize(
    ("workers", "machines", "task_machines", "warnings"),
    [
        (1, MACHINES, {}, []),
        (2, MACHINES, {}, [SEVERAL]),
        (2, MACHINES, {"worker-0": "m0", "worker-1": "m1"}, [SEVERAL]),
        (2, MACHINES, {"worker-0": "m0"}, [f"worker-1 is added on m1. {MOVES}"]),
        (1, MACHINES, {"worker-0": "m0", "worker-1": "m1"}, [f"worker-1 is removed from m1. {MOVES}"]),
        (1, MACHINES[1:], {"worker-0": "m0"}, [f"worker-0 moves from m0 to m1. {MOVES}"]),
        (2, MACHINES[:1], {"worker-0": "m0"}, []),
        (1, MACHINES[:1], {"worker-0": "m0", "worker-1": "m0"}, []),
    ],
)
def test_checkpoints_on_several_machines_are_warned_of(
    workers: int, machines: list[Machine], task_machines: dict[str, str], warnings: list[str]
) -> None:
    requested = spec(workers=workers)
    existing = inventory(requested, *machines, train_dir="/train", data_dir="", task_machines=task_machines)
    assert checkpoint_warnings(make_plan(requested, existing), task_machines) == warnings
