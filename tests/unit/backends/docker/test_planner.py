"""What a plan changes in existing services."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.props import task_props
from tfdeploy.backends.docker.planner import service_changes
from tfdeploy.backends.docker.swarm.services import ContainerSettings, task_service
from tfdeploy.backends.docker.volumes import bind

SETTINGS = ContainerSettings.from_dict(task_props()["container"])


def change_lines(container: dict[str, Any], **arguments: Any) -> list[str]:
    """What changes of a worker, which is as `task_props` has it, under a plan with these arguments, as a preview prints it."""
    containers, desired = {"worker-0": replace(SETTINGS, **container)}, task_service(task_props(hostname="worker-0"))
    services = {"worker-0": {"Spec": {"Labels": dict(desired.labels), "TaskTemplate": dict(desired.template)}}}
    return [str(change) for change in service_changes(plan(workers=1, **arguments), containers, services)]


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
