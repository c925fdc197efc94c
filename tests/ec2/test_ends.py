"""Machines that end themselves, and the record that outlives them."""

import shutil

from tests.ec2.project import Ec2Project
from tests.ec2.test_life import JOB, MANAGER, STEPS, TASKS, WORKER, until_resumed
from tests.waiting import until


def gone(project: Ec2Project) -> None:
    """Wait until no machine is left, without anybody's word."""
    until(lambda: "instances" not in project.left(), "machines have ended themselves")


def test_a_job_that_ends_unseen_leaves_its_record_and_no_machine(project: Ec2Project) -> None:
    project.write(f'{JOB}, idle="10s"', STEPS)
    project.up()
    project.until_running(*TASKS)
    runs = project.box.calls("RunInstances")
    machines = [project.machine(name).id for name in (MANAGER, "test-worker-m0", WORKER)]
    project.open()
    gone(project)
    for machine in machines:
        assert "tfdeploy: ends: idle for 10 s" in project.box.console(machine)
    assert project.look().view["job"]["verdict"][0] == "succeeded", "whoever only looks is told too"

    # As on another computer, which has never looked.
    shutil.rmtree(project.folder / "state")
    assert "is not made again: the run is over" in project.call("preview", "--stack", project.stack).output
    project.up()
    outputs = project.outputs()
    assert (outputs["state"], outputs["metrics"]) == ("succeeded", {"accuracy": 0.5})
    assert outputs["logs"]["worker-0"][-1] == "accuracy: 0.5"
    assert project.box.calls("RunInstances") == runs
    assert project.up().steps().keys() == {"unchanged"}

    bucket = project.bucket()
    assert f"its bucket is kept: s3://{bucket}" in project.destroy().output
    assert project.bucket() == bucket


def test_a_lifetime_ends_in_training_and_the_next_up_goes_on(project: Ec2Project) -> None:
    project.write(f'{JOB}, lifetime="100s"', STEPS)
    project.up()
    project.until_running(*TASKS)
    gone(project)
    shutil.rmtree(project.folder / "state")

    project.write(f'{JOB}, lifetime="1h", keep_record=False', STEPS)
    project.up()
    until_resumed(project, *TASKS)
    project.destroy()
    assert project.bucket() == ""
