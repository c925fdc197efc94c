"""A Pulumi project whose cluster stands on a Docker Swarm, driven as a user drives it."""

from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from tests.engine.cli import DockerFailed, docker
from tests.integration.conftest import Project, imported
from tests.waiting import until
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.backends.backend import load
from tfdeploy.backends.base import ObservedState
from tfdeploy.backends.docker.backend import BACKEND
from tfdeploy.backends.docker.labels import ID_LABEL, service_name, user_volume_labels
from tfdeploy.backends.record_copy import RecordCopy
from tfdeploy.paths import NO_ID
from tfdeploy.report.report import task_status

KINDS = ("service", "network", "config", "secret", "volume", "image")
GATE = ".gate"

GATED = """\
import os, pathlib, sys, time
folder, hostname = pathlib.Path(os.environ["COUNTER"]), os.environ["TFDEPLOY_HOSTNAME"]
counter = folder / hostname
counter.write_text(str(int(counter.read_text() if counter.exists() else 0) + 1))
print(hostname, "begins", *sys.argv[1:])
number = 0
while not (folder / ".gate").exists() or os.environ["TFDEPLOY_JOB_NAME"] == "ps":
    print("tick", number)
    number += 1
    time.sleep(0.1)
print(hostname, "ends after", number)
"""
"""Goes on until the test calls `open`."""


class ContainerProject(Project):
    """A project whose cluster is observed without Pulumi, by calls of its backend."""

    backend_name = "docker"

    @property
    def cluster(self) -> Any:
        """The handle of the project's cluster."""
        return self.ref("test")

    def known(self) -> str:
        """The project's tasks and their errors, for a test that waits too long."""
        raise NotImplementedError

    def observe(self, log_lines: int = 0) -> ObservedState:
        """One observation."""
        return load(self.backend_name).runner.observe(self.cluster, "", ViewRequest(log_lines))

    def look(self, log_lines: int = 0) -> ObservedState:
        """One observation, to which the controller has responded."""

        def answered() -> ObservedState | None:
            observed = self.observe(log_lines)
            return observed if observed.controller_silent_since is None else None

        return until(answered, "the controller answers", seen=self.known)

    def job(self) -> RunState:
        """The run as it is now."""
        run = self.look().view.run_state
        assert run is not None
        return run

    def sees(self) -> dict[str, str]:
        """Hostname to status, as an observation has it now."""
        observed = self.look()
        run = observed.view.run_state
        return {name: task_status(task, observed) for name, task in run.tasks.items()} if run else {}

    def until_running(self, *hostnames: str) -> None:
        """Wait until an observation has these tasks as running."""

        def running() -> bool:
            run = self.observe().view.run_state
            tasks = run.tasks if run else {}
            return all(name in tasks and tasks[name].state == "running" for name in hostnames)

        until(running, f"{hostnames} running", seen=self.known)


class DockerProject(ContainerProject):
    """The arguments that a test gives are for any backend; what is Docker's is added here."""

    modules = imported("docker", "resources")

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
        image = "" if "build" in arguments else f"'image': {self.image!r}, "
        # A kept volume would stay on an engine that others use too.
        container = f"container={{{image}'volumes': ['{counter}:{counter}'], 'retain_volumes': False}}"
        helper = f"docker={{'cleanup_image': {self.image!r}}}"
        super().write(f'backend="docker", {container}, {helper}, {arguments}', *rest)

    def preview(self, arguments: str, *rest: str) -> str:
        """What a preview with these arguments prints."""
        self.write(arguments, *rest)
        return self.call("preview", "--stack", self.stack).output

    @property
    def cluster(self) -> Any:
        """The handle of the project's cluster."""
        return {**self.ref(), "backend": "docker", "home": self.host}

    def docker(self, *arguments: str) -> str:
        """What a docker command prints."""
        return docker(self.host, *arguments)

    def service(self, hostname: str) -> str:
        """The name of a task's service."""
        return service_name(self.cluster, hostname)

    def container(self, hostname: str) -> str:
        """The running container of a task on this engine; empty when there is none."""
        name = f"label=com.docker.swarm.service.name={self.service(hostname)}"
        return self.docker("ps", "--quiet", "--filter", name, "--filter", "status=running").partition("\n")[0]

    def inside(self, hostname: str, *command: str) -> str:
        """What a command in a task's container prints."""
        return self.docker("exec", self.container(hostname), *command)

    def filters(self, name: str = "test") -> list[str]:
        """The options of docker's listings that find what is the cluster's."""
        return ["--filter", f"label={ID_LABEL}={self.ref(name)['id'] or NO_ID}"]

    def left(self) -> dict[str, str]:
        """What has the labels of the project's clusters, by kind."""
        found = dict.fromkeys((*KINDS, "container"), "")
        for ref in self.refs():
            own = ("--filter", f"label={ID_LABEL}={ref['id']}")
            for kind in found:
                listing = ("ps", "--all") if kind == "container" else (kind, "ls")
                found[kind] += self.docker(*listing, "--quiet", *own)
        return {kind: names for kind, names in found.items() if names}

    def volumes(self) -> set[str]:
        """The volumes on this engine that the user named and Docker created for a cluster of the project."""
        found = set()
        for ref in self.refs():
            labels = [f"--filter=label={key}={value}" for key, value in user_volume_labels(ref).items()]
            found |= {*self.docker("volume", "ls", "--quiet", *labels).split()}
        return found

    def known(self) -> str:
        """The project's tasks and their errors, as the engine has them."""
        filters = [self.filters(name) for name in self.names]
        services = [service for own in filters for service in self.docker("service", "ls", "--quiet", *own).split()]
        show = "{{.Name}} {{.Node}} {{.DesiredState}} {{.CurrentState}} {{.Error}}"
        return self.docker("service", "ps", "--no-trunc", "--format", show, *services) if services else "no service"

    def open(self) -> None:
        """Let `GATED` programs end."""
        (self.folder / "counter" / GATE).write_text("0")

    def events(self) -> list[tuple[str, str, int]]:
        """Kind, task and attempt of each event of the current run."""
        return [(event.kind, event.task, event.attempt) for event in self.look().view.events]

    def until_event(self, kind: str, task: str) -> None:
        """Wait until the record has this event."""
        until(lambda: any(event[:2] == (kind, task) for event in self.events()), f"event {kind} of {task}")

    def finished(self) -> dict[str, Any]:
        """All stack outputs after an `up` that waits for the end of the job."""
        self.up(env={"TFDEPLOY_WAIT": "10m"})
        return self.outputs()

    def record(self) -> Record:
        """The copy of the cluster's record in the user's state folder."""
        return RecordCopy(self.cluster).record

    def remove_by_hand(self, *kinds: str) -> None:
        """Remove the services with their containers, and all of these kinds, as somebody does who is in a hurry."""
        self.docker("service", "rm", *self.left()["service"].split())
        for kind in ("container", *kinds):
            force = ["--force"] if kind == "container" else []

            def gone(kind: str = kind, force: list[str] = force) -> bool:
                with suppress(DockerFailed):  # the engine may be removing one
                    self.docker(kind, "rm", *force, *self.left().get(kind, "").split())
                return kind not in self.left()

            until(gone, f"no {kind}")

    def assert_nothing_left(self) -> None:
        """Nothing on the engine has the project's labels."""
        assert self.left() == {}

    def clean(self) -> None:
        """Take away whatever the test left, without Pulumi."""
        with suppress(DockerFailed):
            if self.left():
                for ref in self.refs():
                    BACKEND.runner.delete_all({**ref, "home": self.host}, "", {"volumes": False, "record": False})
            if volumes := self.volumes():
                self.docker("volume", "rm", *volumes)
