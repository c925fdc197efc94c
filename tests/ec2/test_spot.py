"""Spot instances that Amazon takes back: tasks are told in time, and the next `up` makes the machine again."""

from functools import partial

from tests.ec2.project import Ec2Project
from tests.waiting import until

SAVES = """\
import os, pathlib, signal, sys, time, urllib.request
checkpoint = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], os.environ["TFDEPLOY_HOSTNAME"])
step = int(checkpoint.read_text()) if checkpoint.exists() else 0

def save(*_):
    checkpoint.write_text(str(step))
    print("saved at", step, flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
token = urllib.request.Request("http://169.254.169.254/latest/api/token", method="PUT")
token.add_header("X-aws-ec2-metadata-token-ttl-seconds", "60")
try:
    print("metadata:", urllib.request.urlopen(token, timeout=10).read())
except OSError as error:
    print("metadata:", error)
print("resumed from", step, flush=True)
while True:
    step += 1
    time.sleep(0.1)
"""
JOB = (
    'command=["python", "train.py"], code="code", ps=1, workers=1, wait="0", network="host", '
    'jobs={"worker": {"spot": True}}, restart={"on": ["any"], "maximum": 20}'
)
WORKER = "test-worker-m0"


def lines(project: Ec2Project, hostname: str, begin: str) -> list[str]:
    """What follows `begin` in the task's lines that begin so."""
    found = project.look(10_000).view["logs"].get(hostname, [])
    return [text.removeprefix(begin).strip() for _, _, text in found if text.startswith(begin)]


def test_a_notice_lets_tasks_save_and_the_next_up_goes_on(project: Ec2Project) -> None:
    project.write(JOB, SAVES)
    project.up()
    project.until_running("ps-0", "worker-0")
    machine = project.machine(WORKER).id
    described = project.box.client("ec2").describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]
    assert described["InstanceLifecycle"] == "spot"
    for hostname in ("ps-0", "worker-0"):
        until(partial(lines, project, hostname, "metadata:"), "it has asked")
        assert lines(project, hostname, "metadata:") == ["<urlopen error [Errno 111] Connection refused>"]

    project.box.notice_spot(machine, 120)
    until(lambda: project.sees_machines()[WORKER] == "gone", "the machine has gone before it was taken", 110)
    (saved,) = lines(project, "worker-0", "saved at")
    assert int(saved) > 0
    events = [event["text"] for event in project.look().view["events"]]
    assert any("worker-0" in text and "spot instance is taken away at" in text for text in events), events
    assert project.sees()["worker-0"] == "interrupted"

    preview = project.call("preview", "--stack", project.stack).output
    assert f"{WORKER} is made: m7i.large" in preview
    project.up()
    project.until_running("ps-0", "worker-0")
    until(lambda: lines(project, "worker-0", "resumed from")[-1] == saved, "it has resumed")
    project.destroy()
