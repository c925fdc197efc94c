"""Two secrets that a job is given, and all places on EC2 where they must not be."""

import base64
import hashlib
import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from tests.docker.test_secrets import CANARY, PLAIN, SECRETS, command_lines
from tests.ec2.project import Ec2Project

__all__ = ["READS", "SECRETS", "Canaries", "lines_of_up"]

READS = """\
import hashlib, os, pathlib
secrets = pathlib.Path(os.environ["TFDEPLOY_SECRETS"])
assert os.environ["API_TOKEN"] == (secrets / "API_TOKEN").read_text()
assert "license.txt" not in os.environ
for name in ("API_TOKEN", "license.txt"):
    print("digest", hashlib.sha256((secrets / name).read_bytes()).hexdigest(), flush=True)
"""
"""The beginning of a program: it reads them, and tells their digests."""


class Canaries:
    """The secrets of a cluster that runs, its token among them."""

    def __init__(self, project: Ec2Project, manager: str) -> None:
        self._project = project
        machine = project.machine(manager).id
        controller = project.box.run(machine, "docker", "ps", "--quiet", "--filter=name=controller").strip()
        token = project.box.run(machine, "docker", "exec", controller, "cat", "/run/tfdeploy/token").strip()
        assert len(token) == 32
        plain = (CANARY, PLAIN, token)
        self.words = [*plain, *(base64.b64encode(word.encode()).decode().rstrip("=") for word in plain)]
        """The secrets, as they are and in base64."""
        self.digests = [hashlib.sha256(word.encode()).hexdigest() for word in (CANARY, PLAIN)]
        """What tasks tell that have read them."""

    def places(self, name: str) -> Mapping[str, str]:
        """What is to be read on a machine of the cluster, and of it in AWS; place to text."""
        project = self._project
        machine = project.machine(name).id
        ec2 = project.box.client("ec2")
        data = ec2.describe_instance_attribute(InstanceId=machine, Attribute="userData")["UserData"]["Value"]
        containers = project.box.run(machine, "docker", "ps", "--all", "--quiet").split()
        found = {
            "containers": project.box.run(machine, "docker", "inspect", *containers),
            "watchdog": project.box.run(machine, "cat", "/etc/tfdeploy/watchdog.json", "/etc/docker/daemon.json"),
            "instance": json.dumps(ec2.describe_instances(InstanceIds=[machine]), default=str),
            "user data": base64.b64decode(data).decode(),
            "console": project.box.console(machine),
        }
        return {f"{name}: {place}": text for place, text in found.items()}

    def shared_places(self, manager: str) -> Mapping[str, str]:
        """What the Swarm and Pulumi's state say; place to text."""
        machine = self._project.machine(manager).id
        services = self._project.box.run(machine, "docker", "service", "ls", "--quiet").split()
        return {
            "services": self._project.box.run(machine, "docker", "service", "inspect", *services),
            "state": self._project.call("stack", "export", "--stack", self._project.stack).output,
        }

    def record(self) -> str:
        """All that is in S3 of the cluster."""
        return "".join(data.decode(errors="replace") for data in self._project.stored().values())

    def assert_absent(self, places: Mapping[str, str]) -> None:
        """Each place has a text, and none of the secrets."""
        for place, text in places.items():
            assert text, place
            assert [word for word in self.words if word in text] == [], place


def lines_of_up(project: Ec2Project) -> Mapping[str, str]:
    """Run `pulumi up`: what it prints, and all command lines on this computer, those in the machines among them, meanwhile."""
    running = project.start("up", "--yes", "--skip-preview", "--stack", project.stack)
    argv = ""
    while running.poll() is None:
        argv += command_lines()
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.1)
    assert running.stdout is not None
    shown = running.stdout.read()
    assert running.returncode == 0, shown
    return {"shown": shown, "command lines": argv + command_lines()}
