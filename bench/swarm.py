"""The Docker engine of this machine, and a cluster of tfdeploy's on it."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.cli import DockerFailed
from tests.engine.cli import docker as command
from tests.engine.daemon import running
from tfdeploy.backends.docker import BACKEND

from .engine import CLUSTER, STACK, BenchError, Project, Workplace, project


def address() -> str:
    """The engine that answers and manages a Swarm; empty where there is none."""
    found = running()
    if found is None:
        return ""
    state = command(found, "info", "--format", "{{.Swarm.ControlAvailable}}")
    return found if state == "true" else ""


def docker(*arguments: str | Path, stdin: str | None = None) -> str:
    """What a docker command prints.

    Raises:
        BenchError: it failed.
    """
    try:
        return command(address_now(), *arguments, stdin=stdin)
    except DockerFailed as error:
        raise BenchError(str(error)) from None


def address_now() -> str:
    """The address of the engine that the rows use."""
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def version() -> str:
    """The engine's own version."""
    return docker("version", "--format", "{{.Server.Version}}")


class OnSwarm:
    """A cluster of `bench/cluster` on the engine."""

    def __init__(self, made: Project) -> None:
        self.made = made
        self.handle: Any = {
            "backend": "docker",
            "project": "bench",
            "stack": STACK,
            "name": "bench",
            "home": address_now(),
        }

    def outputs(self, hostnames: list[str], lines: int = 2000) -> list[str]:
        """The last lines of each of these tasks in the present run; empty as long as there are none."""
        view = BACKEND.look(self.handle, "", {"log_lines": lines, "metrics": {}}).view
        logs: Mapping[str, Any] = view["logs"] if view["job"] else {}
        return ["".join(f"{text}\n" for _, _, text in logs.get(hostname, [])) for hostname in hostnames]

    def containers(self) -> list[str]:
        """The containers that run: of all tasks, and the keeper's."""
        labels = (f"tfdeploy.stack={STACK}", "tfdeploy.cluster=bench")
        filters = [word for label in labels for word in ("--filter", f"label={label}")]
        return docker("ps", "--quiet", *filters).split()


@contextmanager
def on_swarm(place: Workplace, name: str, image: str, config: Mapping[str, Any]) -> Iterator[OnSwarm]:
    """A project whose cluster stands on the engine; looks of this process go to the workplace too."""
    mine = {"tfdeploy:backend": "docker", "tfdeploy:docker_host": address_now(), "tfdeploy:image": image}
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(place.state)
    try:
        with project(place, CLUSTER, name, {**mine, **config}) as made:
            yield OnSwarm(made)
    finally:
        os.environ.pop("XDG_STATE_HOME")
        if before is not None:
            os.environ["XDG_STATE_HOME"] = before


def runs(command_line: list[str]) -> str:
    """What a command prints; its failure is the benchmark's."""
    done = subprocess.run(command_line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command_line)}: {done.stderr.strip()}")
    return done.stdout
