"""The Docker engine of this machine, and a cluster of tfdeploy's on it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tfdeploy.backends.docker import BACKEND
from tfdeploy.backends.docker.engine import address

from .baselines.containers import Services, remove_labelled
from .ending import undisturbed
from .engine import CLUSTER, STACK, Project, Workplace, project
from .processes import docker, last_lines
from .standing import refuse_failed

_STATE = "XDG_STATE_HOME"
_LABEL = f"tfdeploy.stack={STACK}"
"""On everything that this run's clusters have on the engine."""


class OnSwarm:
    """A cluster of `bench/cluster` on the engine, whose job must not fail."""

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
        return docker("ps", "--quiet", "--filter=status=running", f"--filter=label={_LABEL}").split()

    def check(self) -> None:
        """Raise BenchError when the job has failed."""
        if (job := self.look()["job"]) is not None:
            refuse_failed(job, self.tail())

    def tail(self) -> str:
        """The last lines of each task, and what the engine says of its container."""
        logs = {
            name: last_lines("\n".join(text for _, _, text in lines)) for name, lines in self.look(30)["logs"].items()
        }
        told = [f"{name} printed at last:\n{text}" for name, text in logs.items()]
        return "\n".join([*told, Services(_LABEL).tail()])


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
        with undisturbed():
            remove_labelled(_LABEL)
