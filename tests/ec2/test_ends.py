"""Machines that end themselves: a spot instance that is taken back, a lifetime, a job that has ended; and what outlives them.

The first machines have the tasks of an elastic cluster, then tasks on their own network. Those that come after them are reached
through SSM.
"""

import json
import os
import shutil
from collections.abc import Iterator
from functools import partial

import pytest

from tests.box.cloud import COMMANDS
from tests.docker.project import GATE, GATED
from tests.ec2.project import Ec2Project
from tests.ec2.training import JOB, MANAGER, TASKS, WATCHDOG, WORKER, limit, lines, until_gone, until_resumed
from tests.waiting import until
from tfdeploy.backends.ec2.machine import ssh
from tfdeploy.backends.ec2.record_bucket import MANIFEST, bucket_of
from tfdeploy.backends.record_copy import RecordCopy

pytestmark = pytest.mark.full

SAVES = f"""\
import os, pathlib, signal, sys, time, urllib.request
checkpoint = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], os.environ["TFDEPLOY_HOSTNAME"])
step = int(checkpoint.read_text()) if checkpoint.exists() else 0

def save(*_):
    checkpoint.write_text(str(step))
    checkpoint.with_suffix(".keras").write_text("saved")
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
gate = pathlib.Path(os.environ["COUNTER"], "{GATE}")
while not gate.exists() or os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    step += 1
    time.sleep(0.1)
checkpoint.with_suffix(".keras").write_bytes(bytes(64 << 20))
print("accuracy: 0.5")
"""
"""Saves its step only when it is asked to stop."""

SPOT = f'{JOB}, jobs={{"worker": {{"ec2": {{"spot": True}}}}}}, ec2={{"idle_timeout": "10s"}}'
AGAIN = f'{SPOT}, ec2={{"max_lifetime": "1h", "connectivity": "ssm", "ssh_cidrs": None}}'
PORTS_OF_MEMBERS = {2049, 2377, 4789, 7946}
"""Of shared files, of the Swarm, and of its overlay network."""
POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"


@pytest.fixture(autouse=True, scope="module")
def session_commands(life: Ec2Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The stand-in for the AWS command is on PATH, and something by the name of its plugin."""
    plugin = tmp_path_factory.mktemp("plugin") / "session-manager-plugin"
    plugin.touch(mode=0o755)
    folders = f"{COMMANDS}:{plugin.parent}"
    life.env["PATH"] = f"{folders}:{life.env['PATH']}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folders}:{os.environ['PATH']}")
        yield


def artifacts(project: Ec2Project) -> dict[str, int]:
    """The artifacts of the present run on this computer, with their sizes."""
    record = RecordCopy(project.cluster).record
    run = record.current()
    assert run is not None
    folder = record.artifacts_folder(run.spec.id)
    return {path.name: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def policies(project: Ec2Project, name: str) -> tuple[list[str], list[str]]:
    """Those of AWS's that a machine's role has, and those of its own."""
    iam = project.box.client("iam")
    profile = project.described(name)["IamInstanceProfile"]["Arn"].rpartition("/")[2]
    (role,) = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
    attached = iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
    return [one["PolicyArn"] for one in attached], iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]


def test_a_worker_comes_and_goes_with_its_machine_while_the_others_continue(project: Ec2Project) -> None:
    for workers in (1, 2, 1):
        project.write(f"{SPOT.replace('workers=1', f'workers={workers}')}, elastic={{'max': 3}}", GATED)
        project.up()
        project.until_running("ps-0", *(f"worker-{index}" for index in range(workers)))
        machines = {"test-ps-m0", *(f"test-worker-m{index}" for index in range(workers))}
        rows = {row["machine"]: row["status"] for row in project.outputs()["machines"]}
        assert rows == dict.fromkeys(machines, "connected")
    assert project.counts() == {"ps-0": 1, "worker-0": 1, "worker-1": 1}


def test_a_task_on_the_machines_network_cannot_ask_for_its_role(project: Ec2Project) -> None:
    project.write(f'{SPOT}, ec2={{"max_lifetime": "1h"}}, container={{"network": "host"}}', SAVES)
    project.up()
    project.until_running(*TASKS)
    assert project.described(WORKER)["InstanceLifecycle"] == "spot"
    assert project.ports() == {22, *PORTS_OF_MEMBERS, 1024}, "and all to 65535, for tasks"
    for hostname in TASKS:
        until(partial(lines, project, hostname, "metadata:"), "it has asked")
        assert lines(project, hostname, "metadata:") == ["<urlopen error [Errno 111] Connection refused>"]


def test_a_notice_lets_tasks_save(project: Ec2Project) -> None:
    project.box.notice_spot(project.machine(WORKER).id, 120)
    until(lambda: project.sees_machines()[WORKER] == "gone", "the machine has gone before it was taken", 110)
    (saved,) = lines(project, "worker-0", "saved at")
    assert int(saved) > 0
    happened = [(event.task, event.reason) for event in project.look().view.events]
    assert any(task == "worker-0" and "spot instance is taken away at" in reason for task, reason in happened), happened
    assert project.sees()["worker-0"] == "interrupted"
    assert artifacts(project) == {"worker-0.keras": 5}
    assert f"{WORKER}: will be created: m7i.large" in project.call("preview", "--stack", project.stack).output


def test_a_lifetime_ends_in_training(project: Ec2Project) -> None:
    manager = project.machine(MANAGER).id
    assert json.loads(project.box.run(manager, "cat", WATCHDOG))["lifetime"] == 3600.0
    limit(project, manager, "lifetime", 1.0)
    until_gone(project)
    assert "tfdeploy: ends: max_lifetime of 1 s is over" in project.box.console(manager)
    assert "max_lifetime of 1 s is over" in project.explained()


def test_the_next_up_goes_on_through_ssm_and_opens_no_port_for_ssh(project: Ec2Project) -> None:
    # As on another computer, which has never looked.
    shutil.rmtree(project.folder / "state")
    project.write(AGAIN, SAVES)
    done = project.up()
    until_resumed(project, "worker-0")
    until_resumed(project, "ps-0", least=0)
    assert f"({project.machine(WORKER).id}, through SSM)" in done.output
    outputs = project.outputs()
    assert [row["public_ip"] for row in (*outputs["machines"], *outputs["tasks"])] == [""] * 4
    assert all("PublicIpAddress" not in project.described(name) for name in (MANAGER, WORKER))
    assert project.ports().isdisjoint({22})
    ((aws, own), (aws_of_manager, own_of_manager)) = (policies(project, name) for name in (WORKER, MANAGER))
    assert (aws, own, aws_of_manager, len(own_of_manager)) == ([POLICY], [], [POLICY], 1)
    assert project.up().steps().keys() == {"unchanged"}


def test_another_computer_knows_the_machines_by_an_up(project: Ec2Project) -> None:
    known, folder = ssh.read(project.cluster), ssh.folder(project.cluster)
    shutil.rmtree(folder)
    preview = project.call("preview", "--stack", project.stack)
    assert preview.exit_code == 0, preview.output
    assert not folder.exists(), "a preview leaves nothing behind"
    assert project.up().steps().keys() == {"unchanged"}
    assert ssh.read(project.cluster) == known
    until(lambda: project.sees()["worker-0"] == "running", "it is seen through SSM")


def test_a_job_that_ends_unseen_leaves_its_record_and_no_machine(project: Ec2Project) -> None:
    runs = project.box.calls("RunInstances")
    machines = [project.machine(name).id for name in (MANAGER, WORKER)]
    project.open()
    until_gone(project)
    for machine in machines:
        assert "tfdeploy: ends: idle for 10 s" in project.box.console(machine)
    run = project.look().view.run_state
    assert run is not None
    assert run.result is not None
    assert run.result.state == "succeeded", "a status command sees it too"

    shutil.rmtree(project.folder / "state")
    preview = project.call("preview", "--stack", project.stack).output
    assert all(f"{name} is gone and is not created again" in preview for name in (MANAGER, WORKER))
    project.up()
    outputs = project.outputs()
    assert (outputs["state"], outputs["metrics"]) == ("succeeded", {"accuracy": 0.5})
    assert outputs["logs"]["worker-0"][-1] == "accuracy: 0.5"
    assert artifacts(project) == {"worker-0.keras": 64 << 20, "ps-0.keras": 5}
    assert [row["problem"] for row in outputs["artifacts"]] == ["", ""]
    assert project.box.calls("RunInstances") == runs
    assert project.up().steps().keys() == {"unchanged"}


def test_destroy_keeps_the_record_in_s3_alone(project: Ec2Project) -> None:
    before = project.stored()
    url = bucket_of(project.cluster).url
    assert f"the record is retained: {url}" in project.destroy().output
    after = project.stored()
    assert json.loads(after.pop(MANIFEST)).keys() == {"ended"}
    assert before.pop(MANIFEST)
    assert after == before
    assert project.box.left().keys().isdisjoint({"IAM roles", "IAM instance profiles"})
