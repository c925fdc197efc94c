"""The tests' own Kubernetes with three nodes and TFJob's operator, and MNIST on it: as a cluster of tfdeploy's, and as a TFJob.

On the first node are what must not be lost: the ps, and the controller or the operator. The workers are on the two others.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.engine.images import PYTHON, SITE, tensorflow_packages
from tests.kube import plane
from tests.kube.cluster import Cluster, cluster
from tests.kube.images import archive
from tests.kube.node import Node
from tests.kube.programs import kube as parts

from . import mnist
from .baselines import tfjob
from .ending import undisturbed
from .engine import CLUSTER, TASKS, UP, Workplace, project
from .processes import BenchError, Process, last_lines, until

LABEL = "bench/place"
PLACES = {"ps": {LABEL: "first"}, "worker": {LABEL: "workers"}}
FOLDER = "/bench"
"""Of the machine, in each pod: what programs print, and the checkpoints."""

_PODS = "/api/v1/namespaces/default/pods"
_JOBS = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"
_NODES = 3
_SECONDS = 300.0


class Pods:
    """The pods of one training, and what their programs print."""

    def __init__(self, kube: Cluster, folder: Path, label: str) -> None:
        self.kube, self.folder, self._label = kube, folder, label
        self.folder.mkdir()

    def printed(self, task: str) -> str:
        """All that a task has printed."""
        return "".join(path.read_text() for path in self.folder.glob(f"*{task}"))

    def step_after(self, task: str, at: float) -> float | None:
        """When a task printed a step for the first time after `at`, by its own clock."""
        return next((when for when, _ in mnist.steps([self.printed(task)]) if when > at), None)

    def joined_after(self, task: str, at: float) -> float | None:
        """When a worker opened its session at the ps for the first time after `at`, by its own clock."""
        return next((when for when in mnist.joined(self.printed(task)) if when > at), None)

    def programs(self, task: str = "") -> list[psutil.Process]:
        """The programs that run, of one task or of all."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if "stamped.py" in process.cmdline() and self._is_of(process.environ(), task):
                    found.append(process)
        return found

    def _is_of(self, environment: dict[str, str], task: str) -> bool:
        is_of_training = environment.get("BENCH_LINES") == f"{FOLDER}/{self.folder.name}"
        return is_of_training and environment.get("HOSTNAME", "").endswith(task)

    def list(self) -> list[dict[str, Any]]:
        """The pods that exist."""
        return self.kube.api.items(f"{_PODS}?labelSelector={self._label}")

    def node_of(self, task: str) -> Node:
        """The node where a task's pod is."""
        hostnames = {
            item["spec"].get("hostname", item["metadata"]["name"]): item["spec"]["nodeName"] for item in self.list()
        }
        (name,) = (node for hostname, node in hostnames.items() if hostname.endswith(task))
        return next(node for node in self.kube.nodes if node.name == name)

    def tail(self) -> str:
        """The pods, and their last lines."""
        states = [f"{item['metadata']['name']}: {item['status'].get('phase')}" for item in self.list()]
        texts = [f"{path.name} printed at last:\n{last_lines(path.read_text())}" for path in self.folder.iterdir()]
        return "\n".join([*states, *texts])


class Ours:
    """By `pulumi up`."""

    def __init__(self, stack: ExitStack, place: Workplace, kube: Cluster, name: str, steps: int) -> None:
        self.pods = Pods(kube, place.folder / "lines" / name, "tfdeploy/hostname")
        folder = place.folder / "lines"
        volumes = [f"{tensorflow_packages()}:{SITE}:ro", f"{folder}:{FOLDER}"]
        place.environment["KUBECONFIG"] = str(kube.kubeconfig)
        config = {
            "tfdeploy:backend": "kubernetes",
            "tfdeploy:kubernetes": {"storage_class": plane.STORAGE_CLASS, "node_selector": PLACES["ps"]},
            "tfdeploy:container": {"image": PYTHON, "volumes": volumes, "retain_volumes": False},
            "tfdeploy:jobs": {"worker": {"kubernetes": {"node_selector": PLACES["worker"]}}},
            "tfdeploy:ps": 1,
            "tfdeploy:workers": mnist.WORKERS,
            "tfdeploy:command": ["python", *mnist.command(steps), f"--train_dir={FOLDER}/{name}-train"],
            "tfdeploy:env": {"BENCH_LINES": f"{FOLDER}/{name}"},
            "tfdeploy:wait": "0" if steps == mnist.ENDLESS else "10m",
        }
        self._made = stack.enter_context(project(place, CLUSTER, name, config))
        self._call: Process | None = None
        mnist.lay_out(self._made.code)

    def begin(self) -> None:
        """Apply it."""
        self._call = self._made.start(*UP)

    def until_done(self) -> None:
        """Wait until it has succeeded."""
        assert self._call
        self._call.finish(_SECONDS)

    def has_failed(self) -> bool:
        """Whether it has ended without success."""
        return False

    def delete(self) -> None:
        """Delete it with its pods."""
        self._made.pulumi("destroy", "--yes", "--skip-preview")

    def check(self) -> None:
        """Raise BenchError when it has failed."""
        if self._call:
            self._call.check()

    def tail(self) -> str:
        """The last lines of its tasks."""
        return "\n".join([self._call.tail() if self._call else "", self.pods.tail()])


class Peer:
    """By `kubectl apply` of a TFJob."""

    def __init__(self, stack: ExitStack, place: Workplace, kube: Cluster, name: str, steps: int) -> None:
        self.pods = Pods(kube, place.folder / "lines" / name, f"training.kubeflow.org/job-name={name}")
        self._name = name
        code = place.folder / f"{name}-code"
        mnist.lay_out(code)
        (code / "from_tf_config.py").write_text((TASKS / "from_tf_config.py").read_text())
        program, *arguments = mnist.command(steps)
        command = ["python3", "-u", program, "from_tf_config.py", *arguments, f"--train_dir={FOLDER}/{name}-train"]
        volumes = {SITE: str(tensorflow_packages()), FOLDER: str(place.folder / "lines"), "/code": str(code)}
        variables = {"BENCH_LINES": f"{FOLDER}/{name}", "PYTHONDONTWRITEBYTECODE": "1"}
        self._file = place.folder / f"{name}.json"
        described = tfjob.job(name, command, mnist.WORKERS, volumes, variables, PLACES)
        self._file.write_text(json.dumps(described))
        stack.callback(self.delete)

    def begin(self) -> None:
        """Apply it."""
        self._kubectl("apply", f"--filename={self._file}")

    def until_done(self) -> None:
        """Wait until it has succeeded."""
        until(lambda: self._is("Succeeded"), "the TFJob succeeds", self, seconds=_SECONDS)

    def has_failed(self) -> bool:
        """Whether it has ended without success."""
        return self._is("Failed")

    def delete(self) -> None:
        """Delete it with its pods, whose programs ignore SIGTERM as the first process of a container, and run on for 30 s."""
        with undisturbed():
            self._kubectl("delete", "--ignore-not-found", f"--filename={self._file}")
            until(lambda: not self.pods.list(), "the end of the pods", seconds=_SECONDS)

    def check(self) -> None:
        """Raise BenchError when it has failed."""
        if self.has_failed():
            raise BenchError(f"the TFJob has failed\n{self.tail()}")

    def tail(self) -> str:
        """The last lines of its tasks."""
        return self.pods.tail()

    def _is(self, kind: str) -> bool:
        conditions = self.pods.kube.api.get(f"{_JOBS}/{self._name}").get("status", {}).get("conditions") or []
        return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)

    def _kubectl(self, *words: str) -> str:
        return tfjob.kubectl(self.pods.kube.kubeconfig, *words)


Training = Ours | Peer


@contextmanager
def kubernetes(place: Workplace) -> Iterator[Cluster]:
    """A cluster with the operator, for as long as the context lasts."""
    (place.folder / "lines").mkdir()
    with ExitStack() as stack:
        with undisturbed():
            kube = stack.enter_context(cluster(parts(), archive(), _NODES))
        for node in kube.nodes:
            label(kube, node)
        tfjob.install(kube.kubeconfig, (plane.ADDRESS, 6443), PLACES["ps"], place.folder / "operator")
        yield kube


def label(kube: Cluster, node: Node) -> None:
    """Say what a node is for."""
    places = PLACES["ps" if node.number == 1 else "worker"]
    kube.api.merge(node.path, {"metadata": {"labels": places}})
