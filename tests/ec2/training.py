"""A training of one parameter server and one worker, each on a machine of its own, that goes on from its checkpoints."""

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
    'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0", metrics={"accuracy": r"accuracy: (.*)"}, '
    'restart={"on": ["any"], "maximum": 20}, env={"COUNTER": __import__("os").environ["COUNTER"]}'
)
ALONE = JOB.replace("ps=1, ", "")
"""One task, so one machine."""

TASKS = ["ps-0", "worker-0"]
MANAGER, WORKER = "test-ps-m0", "test-worker-m0"
WATCHDOG = "/etc/tfdeploy/watchdog.json"


def lines(project: Ec2Project, hostname: str, begin: str) -> list[str]:
    """What follows `begin` in the task's lines that begin so."""
    found = project.look(10_000).view.logs.get(hostname, [])
    return [line.text.removeprefix(begin).strip() for line in found if line.text.startswith(begin)]


def resumed(project: Ec2Project, hostname: str) -> int:
    """The step from which a task's program last went on."""
    found = lines(project, hostname, "resumed from")
    return next((int(step) for text in reversed(found) for step in text.split()[:1]), -1)


def until_resumed(project: Ec2Project, *hostnames: str, least: int = 1) -> None:
    """Wait until tasks run that have told from which step: it comes a moment after they are known to run."""
    project.until_running(*hostnames)
    for hostname in hostnames:
        until(lambda name=hostname: resumed(project, name) >= least, f"{hostname} has told from where")  # type: ignore[misc]


def limit(project: Ec2Project, machine: str, name: str, seconds: float) -> None:
    """Have a machine's watchdog keep another limit, as if so much time had gone by."""
    edit = f's/"{name}": [0-9.]*/"{name}": {seconds}/'
    project.box.run(machine, "sed", "--in-place", edit, WATCHDOG)
    project.box.run(machine, "systemctl", "restart", "tfdeploy-watchdog")


def until_gone(project: Ec2Project) -> None:
    """Wait until no machine is left, without anybody's word."""
    until(lambda: "instances" not in project.left(), "machines have ended themselves")
