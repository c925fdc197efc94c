"""The Docker engine of this machine, and a cluster of tfdeploy's on it."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tfdeploy import registry
from tfdeploy.agent.record.record import RecordView, ViewRequest
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.docker.backend import BACKEND
from tfdeploy.backends.docker.engine.engine import engine_address
from tfdeploy.backends.docker.labels import ID_LABEL
from tfdeploy.backends.record_copy import RecordCopy

from .baselines.containers import Services, remove_labelled
from .ending import undisturbed
from .engine import CLUSTER, STACK, Project, Workplace, project
from .observed import refuse_failed
from .processes import docker, last_lines, until


class OnSwarm:
    """A cluster of `bench/cluster` on the engine, that must not fail."""

    def __init__(self, made: Project) -> None:
        self.made = made

    @property
    def handle(self) -> ClusterRef:
        """The reference to the cluster, once its `up` has registered it."""
        return until(lambda: registry.find("bench", STACK, "bench"), "the cluster in the registry").cluster

    @property
    def label(self) -> str:
        """The label of everything that the cluster has on the engine."""
        return _label(self.handle)

    def observe(self, lines: int = 0) -> RecordView:
        """Observe it: what the controller returns."""
        return BACKEND.runner.observe(self.handle, "", ViewRequest(lines)).view

    def outputs(self, hostnames: Sequence[str], lines: int = 2000) -> list[str]:
        """The last lines of each of these tasks in the present run; empty as long as there are none."""
        logs = self.observe(lines).logs
        return ["".join(f"{line.text}\n" for line in logs.get(hostname, [])) for hostname in hostnames]

    def containers(self) -> list[str]:
        """The containers that run: of all tasks, and the controller's."""
        return docker("ps", "--quiet", "--filter=status=running", f"--filter=label={self.label}").split()

    @property
    def lock(self) -> Path:
        """The file that each observation locks."""
        return RecordCopy(self.handle).home / "lock"

    def check(self) -> None:
        """Raise BenchError when the job has failed."""
        if (job := self.observe().run_state) is not None:
            refuse_failed(job, self.tail())

    def tail(self) -> str:
        """The last lines of each task, and the engine's state of its container."""
        logs = {
            name: last_lines("\n".join(line.text for line in lines)) for name, lines in self.observe(30).logs.items()
        }
        logs_of_tasks = [f"{name} printed at last:\n{text}" for name, text in logs.items()]
        return "\n".join([*logs_of_tasks, Services(self.label).tail()])


@contextmanager
def on_swarm(place: Workplace, name: str, image: str, config: Mapping[str, Any]) -> Iterator[OnSwarm]:
    """A project with a cluster on the engine; what this process stores about it is in the workplace too."""
    mine = {
        "tfdeploy:backend": "docker",
        "tfdeploy:docker": json.dumps({"host": engine_address("")}),
        "tfdeploy:container": json.dumps({"image": image, "retain_volumes": False}),
    }
    with patch.dict(os.environ, {"XDG_STATE_HOME": str(place.state)}):
        try:
            with project(place, CLUSTER, name, {**mine, **config}) as made:
                yield OnSwarm(made)
        finally:
            with undisturbed():
                for entry in registry.entries():
                    remove_labelled(_label(entry.cluster))


def _label(cluster: ClusterRef) -> str:
    return f"{ID_LABEL}={cluster['id']}"
