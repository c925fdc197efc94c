"""A Pulumi project whose cluster stands on a Docker Swarm, driven as a user drives it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.engine.cli import DockerFailed, docker
from tests.integration.conftest import Call, Project
from tests.waiting import until
from tfdeploy.agent.record import Record
from tfdeploy.backends.docker import BACKEND
from tfdeploy.backends.docker.mirror import Mirror
from tfdeploy.backends.docker.names import labels, service

KINDS = ("service", "network", "config", "secret", "volume", "image")


class DockerProject(Project):
    """The arguments that a test gives are for any backend; what is Docker's is added here."""

    def __init__(self, folder: Path, host: str, image: str, name: str = "project") -> None:
        super().__init__(folder, name)
        self.host = host
        self.image = image
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
        return {"backend": "docker", "project": self.name, "stack": self.stack, "name": "test", "home": self.host}

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

    def left(self) -> dict[str, str]:
        """What carries the cluster's labels, by kind."""
        filters = [part for key, value in labels(self.cluster).items() for part in ("--filter", f"label={key}={value}")]
        found = {kind: self.docker(kind, "ls", "--quiet", *filters) for kind in KINDS}
        found["container"] = self.docker("ps", "--all", "--quiet", *filters)
        return {kind: names for kind, names in found.items() if names}

    def until_running(self, *hostnames: str) -> None:
        """Wait until a look says that these tasks run."""

        def running() -> bool:
            job = BACKEND.look(self.cluster, "", {"log_lines": 0, "metrics": {}}).view["job"]
            return bool(job) and all(job["tasks"].get(name, {}).get("state") == "running" for name in hostnames)

        until(running, f"{hostnames} running", 90)

    def record(self) -> Record:
        """The copy of the cluster's record in the user's state folder."""
        return Mirror(self.cluster).record

    def assert_nothing_left(self) -> None:
        """Nothing on the engine carries the cluster's labels."""
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
                BACKEND.clear(self.cluster, "", False)
