"""The Docker engine of this machine, and a cluster of tfdeploy's on it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.cli import DockerFailed
from tests.engine.cli import docker as command
from tests.engine.daemon import running
from tfdeploy.backends.docker import BACKEND
from tfdeploy.backends.docker.engine import address

from .engine import CLUSTER, STACK, BenchError, Project, Workplace, project

_STATE = "XDG_STATE_HOME"


def answers() -> bool:
    """Whether there is an engine, and it manages a Swarm."""
    return running() is not None and docker("info", "--format", "{{.Swarm.ControlAvailable}}") == "true"


def docker(*arguments: str | Path) -> str:
    """What a docker command prints.

    Raises:
        BenchError: it failed.
    """
    try:
        return command(address(""), *arguments)
    except DockerFailed as error:
        raise BenchError(str(error)) from None


class OnSwarm:
    """A cluster of `bench/cluster` on the engine."""

    def __init__(self, made: Project) -> None:
        self.made = made
        self.handle: Any = {
            "backend": "docker",
            "project": "bench",
            "stack": STACK,
            "name": "bench",
            "home": address(""),
        }

    def look(self, lines: int = 0) -> Mapping[str, Any]:
        """One look at it: what the keeper answers."""
        return BACKEND.look(self.handle, "", {"log_lines": lines, "metrics": {}}).view

    def outputs(self, hostnames: Sequence[str], lines: int = 2000) -> list[str]:
        """The last lines of each of these tasks in the present run; empty as long as there are none."""
        logs = self.look(lines)["logs"]
        return ["".join(f"{text}\n" for _, _, text in logs.get(hostname, [])) for hostname in hostnames]

    def containers(self) -> list[str]:
        """The containers that run: of all tasks, and the keeper's."""
        labels = (f"tfdeploy.stack={STACK}", "tfdeploy.cluster=bench")
        return docker(
            "ps", "--quiet", "--filter", "status=running", *[f"--filter=label={label}" for label in labels]
        ).split()


@contextmanager
def on_swarm(place: Workplace, name: str, image: str, config: Mapping[str, Any]) -> Iterator[OnSwarm]:
    """A project whose cluster stands on the engine; what this process sees of it is kept in the workplace too."""
    mine = {"tfdeploy:backend": "docker", "tfdeploy:docker_host": address(""), "tfdeploy:image": image}
    before = os.environ.get(_STATE)
    os.environ[_STATE] = str(place.state)
    try:
        with project(place, CLUSTER, name, {**mine, **config}) as made:
            yield OnSwarm(made)
    finally:
        del os.environ[_STATE]
        if before is not None:
            os.environ[_STATE] = before
