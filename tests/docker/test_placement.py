"""Marathon's operators on three machines, changed one after the other under tasks that run."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.docker.project import DockerProject
from tests.engine.nested import Nested

pytestmark = pytest.mark.full

SLEEPS = "import time\nprint('here', flush=True)\ntime.sleep(3600)\n"
JOB = 'command=["python", "train.py"], code="code", workers=3, wait="0", container={{"volumes": [], "placement": ["{constraint}"]}}'
ZONES = {"m0": "a", "m1": "b", "m2": "b"}


def test_constraints_change_under_tasks_that_run(nested: Nested, project_on: Callable[[str], DockerProject]) -> None:
    project = project_on(nested.manager)

    def placed(constraint: str) -> list[str]:
        """The machines of the tasks, in order, after an `up` with this constraint."""
        project.write(JOB.format(constraint=constraint), SLEEPS)
        project.up()
        return [row["machine"] for row in project.outputs()["tasks"]]

    project.write(JOB.format(constraint="hostname:UNIQUE"), SLEEPS)
    project.init()
    assert sorted(placed("hostname:UNIQUE")) == ["m0", "m1", "m2"]
    project.until_running("worker-0", "worker-1", "worker-2")

    project.write(JOB.format(constraint="hostname:LIKE:m[01]"), SLEEPS)
    said = project.call("preview", "--stack", project.stack).output
    assert "moves from m2 to" in said
    assert "train_dir is not set, so each machine has its own volume for checkpoints" in said
    assert set(placed("hostname:LIKE:m[01]")) == {"m0", "m1"}
    assert Counter(ZONES[name] for name in placed("zone:GROUP_BY:2")) in ({"a": 1, "b": 2}, {"a": 2, "b": 1})
    assert set(placed("hostname:UNLIKE:m0")) == {"m1", "m2"}
    assert max(Counter(placed("hostname:MAX_PER:1")).values()) == 1
    assert set(placed("zone:CLUSTER:a")) == {"m0"}
    assert {ZONES[name] for name in placed("zone:IS:b")} == {"b"}
    project.until_running("worker-0", "worker-1", "worker-2")

    project.write(JOB.format(constraint="zone:UNIQUE"), SLEEPS)
    assert "zone:UNIQUE" in project.up(fails=True).output, "three tasks, two zones"
    assert {ZONES[row["machine"]] for row in project.outputs()["tasks"]} == {"b"}, "what cannot be changes nothing"
    project.destroy()
