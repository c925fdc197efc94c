"""A Pulumi project whose cluster stands on a Docker Swarm, driven as a user drives it."""

from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from tests.engine.cli import DockerFailed, docker
from tests.integration.conftest import Call, Project
from tests.waiting import until
from tfdeploy.agent.record import Record
from tfdeploy.agent.states import Job
from tfdeploy.backends.base import Sight
from tfdeploy.backends.docker import BACKEND
from tfdeploy.backends.docker.mirror import Mirror
from tfdeploy.backends.docker.names import labels, service
from tfdeploy.report import task_status

KINDS = ("service", "network", "config", "secret", "volume", "image")
GATE = "gate"

GATED = """\
import os, pathlib, sys, time
folder, hostname = pathlib.Path(os.environ["COUNTER"]), os.environ["TFDEPLOY_HOSTNAME"]
counter = folder / hostname
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
print(hostname, "begins", *sys.argv[1:])
number = 0
while not (folder / "gate").exists() or os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    print("tick", number)
    number += 1
    time.sleep(0.1)
print(hostname, "ends after", number)
"""
"""Goes on until the test calls `open`."""


class DockerProject(Project):
    """The arguments that a test gives are for any backend; what is Docker's is added here."""

    def __init__(self, folder: Path, host: str, image: str, name: str = "project") -> None:
        # Others may use the engine too: what stands on it has a name of its own.
        super().__init__(folder, f"{name}-{token_hex(3)}")
        self.host = host
        self.image = image
        self.names = ["test"]
        self.env["DOCKER_HOST"] = host

    def write(self, arguments: str, *rest: str) -> None:
        """Write the Pulumi program and what its tasks run."""
        counter = self.folder / "counter"
        counter.chmod(0o777)
        image = "" if "image=" in arguments or "build=" in arguments else f", image={self.image!r}"
        volumes = "" if "volumes=" in arguments else f", volumes=['{counter}:{counter}']"
        super().write(f'{arguments}, backend="docker"{image}{volumes}', *rest)

    @property
    def cluster(self) -> Any:
        """The handle of the project's cluster."""
        return self.handle("test")

    def handle(self, name: str) -> Any:
        """The handle of one of the project's clusters."""
        return {"backend": "docker", "project": self.name, "stack": self.stack, "name": name, "home": self.host}

    def docker(self, *arguments: str) -> str:
        """What a docker command prints."""
        return docker(self.host, *arguments)

    def service(self, hostname: str) -> str:
        """The name of a task's service."""
        return service(self.cluster, hostname)

    def container(self, hostname: str) -> str:
        """The running container of a task on this engine; empty when there is none."""
        name = f"label=com.docker.swarm.service.name={self.service(hostname)}"
        return self.docker("ps", "--quiet", "--filter", name, "--filter", "status=running").partition("\n")[0]

    def inside(self, hostname: str, *command: str) -> str:
        """What a command in a task's container prints."""
        return self.docker("exec", self.container(hostname), *command)

    def filters(self) -> list[str]:
        """The options of docker's listings that find what is the project's."""
        own = [(key, value) for key, value in labels(self.cluster).items() if not key.endswith("cluster")]
        return [part for key, value in own for part in ("--filter", f"label={key}={value}")]

    def left(self) -> dict[str, str]:
        """What carries the project's labels, by kind."""
        found = {kind: self.docker(kind, "ls", "--quiet", *self.filters()) for kind in KINDS}
        found["container"] = self.docker("ps", "--all", "--quiet", *self.filters())
        return {kind: names for kind, names in found.items() if names}

    def until_running(self, *hostnames: str) -> None:
        """Wait until a look says that these tasks run."""

        def running() -> bool:
            job = BACKEND.look(self.cluster, "", {"log_lines": 0, "metrics": {}}).view["job"]
            return bool(job) and all(job["tasks"].get(name, {}).get("state") == "running" for name in hostnames)

        until(running, f"{hostnames} running", seen=self._swarm)

    def _swarm(self) -> str:
        """What the engine knows of the project's tasks and their errors."""
        services = self.docker("service", "ls", "--quiet", *self.filters()).split()
        show = "{{.Name}} {{.Node}} {{.DesiredState}} {{.CurrentState}} {{.Error}}"
        return self.docker("service", "ps", "--no-trunc", "--format", show, *services) if services else "no service"

    def open(self) -> None:
        """Let `GATED` programs end."""
        (self.folder / "counter" / GATE).write_text("0")

    def counts(self) -> dict[str, int]:
        """How often each task's program was started; 0 while it writes that down."""
        files = [path for path in (self.folder / "counter").iterdir() if path.name != GATE and path.name[0] != "."]
        return {path.name: int(path.read_text() or 0) for path in files}

    def look(self, log_lines: int = 0) -> Sight:
        """One look, without Pulumi, which the keeper has answered."""

        def answered() -> Sight | None:
            sight = BACKEND.look(self.cluster, "", {"log_lines": log_lines, "metrics": {}})
            return sight if sight.keeper_silent_since is None else None

        return until(answered, "the keeper answers")

    def job(self) -> Job:
        """The job as it is now."""
        return Job.from_dict(self.look().view["job"])

    def sees(self) -> dict[str, str]:
        """Hostname to status, as a look has it now."""
        sight = self.look()
        return {name: task_status(task, sight) for name, task in Job.from_dict(sight.view["job"]).tasks.items()}

    def events(self) -> list[str]:
        """What happened in the present run."""
        return [event["text"] for event in self.look().view["events"]]

    def until_event(self, text: str) -> None:
        """Wait until the record tells this."""
        until(lambda: any(text in event for event in self.events()), f"event {text!r}")

    def finished(self) -> dict[str, Any]:
        """All stack outputs after an `up` that waits for the end of the job."""
        self.up(env={"TFDEPLOY_WAIT": "10m"})
        return self.outputs()

    def record(self) -> Record:
        """The copy of the cluster's record in the user's state folder."""
        return Mirror(self.cluster).record

    def assert_nothing_left(self) -> None:
        """Nothing on the engine carries the project's labels."""
        assert self.left() == {}

    def destroy(self) -> Call:
        """`pulumi destroy`, which must succeed and leave nothing."""
        done = self.call("destroy", "--yes", "--skip-preview", "--stack", self.stack)
        assert done.exit_code == 0, done.output
        self.assert_nothing_left()
        return done

    def clean(self) -> None:
        """Take away whatever the test left, without Pulumi."""
        with suppress(DockerFailed):
            if self.left():
                for name in self.names:
                    BACKEND.clear(self.handle(name), "", {"volumes": False, "record": False})
