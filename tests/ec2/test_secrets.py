"""What is secret is where it must be, and nowhere else: not in AWS, not on the machines, not in the record."""

import base64
import hashlib
import json
import subprocess
from contextlib import suppress

from tests.docker.test_secrets import CANARY, PLAIN, READS, SECRETS, command_lines
from tests.ec2.project import Ec2Project
from tests.waiting import until

JOB = f'command=["python", "train.py"], code="code", workers=1, wait="0", {SECRETS}'


def test_secrets_are_in_the_tasks_and_nowhere_else(project: Ec2Project) -> None:
    project.write(JOB, READS.replace("time.sleep(600)", ""))
    running = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    argv = ""
    while running.poll() is None:
        argv += command_lines()
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
    assert running.stdout is not None
    places = {"shown": running.stdout.read()}
    assert running.returncode == 0, places["shown"]
    machine = project.machine("test-worker-m0").id
    ec2, s3 = project.box.client("ec2"), project.box.client("s3")
    containers = project.box.run(machine, "docker", "ps", "--all", "--quiet").split()
    services = project.box.run(machine, "docker", "service", "ls", "--quiet").split()
    keeper = project.box.run(machine, "docker", "ps", "--quiet", "--filter=name=keeper").strip()
    token = project.box.run(machine, "docker", "exec", keeper, "cat", "/run/tfdeploy/token").strip()
    places |= {
        "argv": argv + command_lines(),
        "containers": project.box.run(machine, "docker", "inspect", *containers),
        "services": project.box.run(machine, "docker", "service", "inspect", *services),
        "caretaker": project.box.run(machine, "cat", "/etc/tfdeploy/caretaker.json", "/etc/docker/daemon.json"),
        "instance": json.dumps(ec2.describe_instances(InstanceIds=[machine]), default=str),
        "state": project.call("stack", "export", "--stack", project.stack).output,
    }
    data = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")["UserData"]["Value"]
    places["user data"] = base64.b64decode(data).decode()

    bucket = project.bucket()
    digests = [hashlib.sha256(secret.encode()).hexdigest() for secret in (CANARY, PLAIN)]

    def kept() -> bool:
        stored = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        places["bucket"] = "".join(
            s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read().decode(errors="replace") for one in stored
        )
        return all(digest in places["bucket"] for digest in digests)

    until(kept, "the record of the end is in the bucket")
    places["console"] = project.box.console(machine)
    assert len(token) == 32
    for place, text in places.items():
        assert text, place
        for secret in (CANARY, PLAIN, token):
            assert secret not in text, place
            assert base64.b64encode(secret.encode()).decode().rstrip("=") not in text, place
    project.destroy()
