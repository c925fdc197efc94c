"""A worker of an elastic cluster comes with its machine and goes with it, and the tasks of the other machines continue."""

import pytest

from tests.docker.project import GATED
from tests.ec2.project import Ec2Project

pytestmark = pytest.mark.full

JOB = (
    "command=['python', 'train.py'], code='code', ps=1, workers={workers}, elastic={{'max': 3}}, wait='0', "
    "env={{'COUNTER': __import__('os').environ['COUNTER']}}"
)


def test_a_worker_comes_and_goes_with_its_machine_while_the_others_continue(project: Ec2Project) -> None:
    for workers in (1, 2, 1):
        project.write(JOB.format(workers=workers), GATED)
        project.up()
        project.until_running("ps-0", *(f"worker-{index}" for index in range(workers)))
        machines = {"test-ps-m0", *(f"test-worker-m{index}" for index in range(workers))}
        rows = {row["machine"]: row["status"] for row in project.outputs()["machines"]}
        assert rows == dict.fromkeys(machines, "connected")
    assert project.counts() == {"ps-0": 1, "worker-0": 1, "worker-1": 1}
    project.open()
    project.up(env={"TFDEPLOY_WAIT": "10m"})
    assert project.outputs()["state"] == "succeeded"
    project.destroy()
    project.assert_nothing_left()
