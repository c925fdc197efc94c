"""Machines that die come back under their names, and the training goes on from where it was."""

import json

from tests.docker.project import GATE
from tests.ec2.project import Ec2Project
from tests.waiting import until

STEPS = f"""\
import os, pathlib, sys, time
folder, hostname = pathlib.Path(os.environ["COUNTER"]), os.environ["TFDEPLOY_HOSTNAME"]
counter = folder / hostname
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
checkpoint = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], hostname)
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
print("resumed from", step, *sys.argv[1:])
while not (folder / "{GATE}").exists() or os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    step += 1
    draft = checkpoint.with_suffix(".draft")
    draft.write_text(str(step))
    draft.rename(checkpoint)
    time.sleep(0.1)
print("accuracy: 0.5")
"""
JOB = (
    'command=["python", "train.py"], code="code", ps=1, workers=2, wait="0", metrics={"accuracy": r"accuracy: (.*)"}, '
    'restart={"on": ["any"], "maximum": 20}, env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
TASKS = ["ps-0", "worker-0", "worker-1"]
MANAGER, WORKER = "test-ps-m0", "test-worker-m1"


def resumed(project: Ec2Project, hostname: str) -> int:
    """The step from which a task's program last went on."""
    lines = [text for _, _, text in project.look(10_000).view["logs"][hostname] if text.startswith("resumed from ")]
    return int(lines[-1].split()[2]) if lines else -1


def until_resumed(project: Ec2Project, *hostnames: str, least: int = 1) -> None:
    """Wait until tasks run that have told from which step: it comes a moment after they are known to run."""
    project.until_running(*hostnames)
    for hostname in hostnames:
        until(lambda name=hostname: resumed(project, name) >= least, f"{hostname} has told from where")  # type: ignore[misc]


def test_dead_machines_come_back_under_their_names_and_training_goes_on(project: Ec2Project) -> None:
    project.write(JOB, STEPS)
    project.up()
    until_resumed(project, *TASKS, least=0)
    names = {one.name: one.id for one in project.box.instances()}

    project.box.kill(names[WORKER])
    assert project.sees_machines()[WORKER] == "gone"
    preview = project.call("preview", "--stack", project.stack)
    assert f"{WORKER} is made: m7i.large, ami-" in preview.output
    assert f"{MANAGER} is made" not in preview.output
    done = project.up()
    assert done.steps()["replaced"] == 1, done.output
    assert done.touched() == {"test-swarm"}
    until_resumed(project, "worker-1")
    project.until_running(*TASKS)
    assert [project.machine(name).id for name in (MANAGER, "test-worker-m0")] == [
        names[MANAGER],
        names["test-worker-m0"],
    ]

    project.box.kill(names[MANAGER])
    assert project.sees_machines()[MANAGER] == "gone"
    project.up()
    until_resumed(project, *TASKS)
    assert project.machine("test-worker-m0").id == names["test-worker-m0"]
    assert set(project.sees_machines().values()) == {"connected"}
    assert project.up().steps().keys() == {"unchanged"}

    project.open()
    assert project.up(env={"TFDEPLOY_WAIT": "10m"}).steps().keys() == {"unchanged"}
    assert project.outputs()["state"] == "succeeded"
    runs = project.box.calls("RunInstances")
    for name in (MANAGER, WORKER):
        project.box.kill(project.machine(name).id)
    assert "is not made again: the run is over" in project.call("preview", "--stack", project.stack).output
    project.up()
    outputs = project.outputs()
    assert (outputs["state"], outputs["metrics"]) == ("succeeded", {"accuracy": 0.5})
    assert project.box.calls("RunInstances") == runs
    assert project.left() == {}, "the last machine had nothing to do any more"
    assert project.up().steps().keys() == {"unchanged"}
    assert {row["status"] for row in project.outputs()["machines"]} == {"gone"}
    project.destroy()


def test_what_a_change_of_machines_touches_is_said_and_done(project: Ec2Project) -> None:
    one = JOB.replace("workers=2", "workers=1")
    project.write(one, STEPS)
    project.up()
    until_resumed(project, "ps-0", "worker-0", least=0)
    before = {name: project.machine(name).id for name in (MANAGER, "test-worker-m0")}

    project.write(f'{one}, lifetime="10h", jobs={{"worker": {{"instance_type": "c7i.large"}}}}', STEPS)
    preview = project.call("preview", "--stack", project.stack).output
    assert (
        "test-worker-m0 is made anew (m7i.large gives way to c7i.large); what stands there starts again: worker-0"
        in preview
    )
    assert f"{MANAGER} is made" not in preview
    project.up()
    project.until_running("ps-0", "worker-0")
    assert project.machine(MANAGER).id == before[MANAGER]
    assert project.machine("test-worker-m0").type == "c7i.large"
    told = project.box.run(before[MANAGER], "cat", "/etc/tfdeploy/caretaker.json")
    assert json.loads(told)["lifetime"] == 36000.0
    until_resumed(project, "worker-0")

    project.write(f'{one}, network="host", jobs={{"worker": {{"instance_type": "c7i.large"}}}}', STEPS)
    project.up()
    project.until_running("ps-0", "worker-0")
    manager = project.machine(MANAGER).private_ip
    assert project.looked()["endpoints"]["ps-0"].startswith(f"{manager}:")
    project.destroy()
