"""A TensorFlow cluster in containers, with the docker command and nothing else."""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..ending import undisturbed
from ..processes import BenchError, docker, last_lines, until
from .by_hand import flags, free_ports, tasks

_RUN_SECONDS = 300.0
_REMOVE_SECONDS = 60.0
_FAILED = re.compile(r": Rejected |non-zero exit \((?!137|143)")
"""The engine's state of a container that failed, not of one that it has stopped itself."""


@dataclass(frozen=True)
class Containers:
    """Containers by `docker run`, which must not end."""

    names: list[str] = field(default_factory=list)

    def output(self, name: str) -> str:
        """What one of them has printed on stdout."""
        return docker("logs", name)

    def check(self) -> None:
        """Raise BenchError when one has failed."""
        form = "{{.Name}} {{.State.ExitCode}}"
        for line in docker("inspect", f"--format={form}", *self.names).splitlines():
            name, code = line.removeprefix("/").split()
            if code != "0":
                raise BenchError(f"the container {name} ended with exit code {code}; {_last_output(name)}")

    def tail(self) -> str:
        """The last lines of each."""
        return "\n".join(map(_last_output, self.names))


@contextmanager
def containers(name: str, image: str, code: Path, workers: int, command: Sequence[str]) -> Iterator[Containers]:
    """One ps and some workers by `docker run`, on the machine's own network; removed at the end of the `with` block."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(1 + workers)]
    made = Containers()
    try:
        for job, index in tasks(workers):
            made.names.append(f"{name}-{job}-{index}")
            options = ["--detach", "--init", "--network=host", f"--name={made.names[-1]}", f"--volume={code}:/code:ro"]
            docker("run", *options, "--workdir=/code", image, "python", "-u", *command, *flags(job, index, addresses))
        yield made
    finally:
        with undisturbed(), ExitStack() as stack:
            for each in made.names:
                stack.callback(docker, "rm", "--force", "--volumes", each)


def _last_output(container: str) -> str:
    """The last lines of a container, on both streams."""
    return f"{container} printed at last:\n{last_lines(docker('logs', '--tail=30', container, merged=True))}"


class Stack:
    """One ps and some workers as a stack of services, with an image that is built from the code at each change."""

    def __init__(self, name: str, base: str, code: Path, workers: int, command: Sequence[str]) -> None:
        self._name, self._code, self._workers, self._command = name, code, workers, command
        self._images: list[str] = []
        (code / "Dockerfile").write_text(f"FROM {base}\nWORKDIR /code\nCOPY *.py ./\n")

    def up(self) -> None:
        """Build the image and deploy it."""
        self._images.append(f"{self._name}:{len(self._images)}")
        docker("build", "--quiet", "--tag", self._images[-1], str(self._code))
        addresses = [f"{job}-{index}:2222" for job, index in tasks(self._workers)]
        services = {
            f"{job}-{index}": {
                "image": self._images[-1],
                "init": True,
                "command": ["python", "-u", *self._command, *flags(job, index, addresses)],
                "deploy": {"endpoint_mode": "dnsrr"},
            }
            for job, index in tasks(self._workers)
        }
        # JSON is YAML.
        file = self._code / "stack.yaml"
        file.write_text(json.dumps({"version": "3.7", "services": services}))
        docker("stack", "deploy", "--resolve-image=never", f"--compose-file={file}", self._name)

    @property
    def label(self) -> str:
        """What its services and containers are labelled with."""
        return f"com.docker.stack.namespace={self._name}"

    def output(self, task: str) -> str:
        """What the containers of a task that run have printed."""
        service = f"label=com.docker.swarm.service.name={self._name}_{task}"
        ids = docker("ps", "--quiet", "--filter", service).split()
        return "\n".join(docker("logs", container) for container in ids[:1])

    def remove(self) -> None:
        """Everything that was made."""
        with undisturbed(), ExitStack() as stack:
            for image in self._images:
                stack.callback(docker, "image", "rm", "--force", image)
            stack.callback(remove_labelled, self.label)
            docker("stack", "rm", self._name)


@dataclass(frozen=True)
class Services:
    """The services with a label. Their containers must not fail."""

    label: str

    def check(self) -> None:
        """Raise BenchError when a container could not be started, or its program has failed."""
        if failed := [line for line in self._states().splitlines() if _FAILED.search(line)]:
            raise BenchError("\n".join([last_lines("\n".join(failed)), self._logs(failed[0].partition(".")[0])]))

    def tail(self) -> str:
        """The engine's state of each container."""
        return last_lines(self._states())

    def _states(self) -> str:
        ids = docker("service", "ls", "--quiet", f"--filter=label={self.label}").split()
        form = "--format={{.Name}}: {{.CurrentState}} {{.Error}}"
        return docker("service", "ps", "--no-trunc", form, *ids) if ids else "there is no service"

    def _logs(self, service: str) -> str:
        return f"{service} printed at last:\n{last_lines(docker('service', 'logs', '--raw', service, merged=True))}"


@contextmanager
def services(
    name: str, definitions: Sequence[Sequence[str]], at_once: int, files: Mapping[str, Path] = {}
) -> Iterator[float]:
    """Services on one network, of which each is the last arguments of `docker service create`; the seconds until all containers run.
    `files` has the content of their `config` and their `secret`."""
    label = f"{name}=yes"
    try:
        docker("network", "create", "--driver=overlay", f"--label={label}", name)
        for kind, file in files.items():
            docker(kind, "create", f"--label={label}", name, str(file))
        begun = time.perf_counter()
        options = ["--detach", "--quiet", "--no-resolve-image", "--endpoint-mode=dnsrr"]
        marks = [f"--label={label}", f"--container-label={label}"]

        def create(number: int) -> None:
            network = f"--network=name={name},alias=worker-{number}"
            docker("service", "create", *options, *marks, network, f"--name={name}-{number}", *definitions[number])

        count = len(definitions)
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(create, range(count)))
        running = f"label={label}", "status=running"
        until(lambda: len(_containers(*running)) == count, f"{count} containers", Services(label), seconds=_RUN_SECONDS)
        yield time.perf_counter() - begun
    finally:
        with undisturbed():
            remove_labelled(label)


def like_task(template: Mapping[str, Any], name: str) -> list[str]:
    """The arguments that define a service as `template` does, which has the form of the Engine API; with the files of `services`."""
    container = template["ContainerSpec"]
    executable, *arguments = container["Command"]
    volume = f"volume-label={name}=yes"
    return [
        f"--hostname={container['Hostname']}",
        *[f"--config=source={name},target={item['File']['Name']}" for item in container["Configs"]],
        *[f"--secret=source={name},target={item['File']['Name']}" for item in container["Secrets"]],
        *[f"--env={variable}" for variable in container["Env"]],
        *[f"--mount=type=volume,source={name},target={mount['Target']},{volume}" for mount in container["Mounts"]],
        *[f"--constraint={constraint}" for constraint in template["Placement"]["Constraints"]],
        f"--stop-grace-period={container['StopGracePeriod']}ns",
        f"--restart-condition={template['RestartPolicy']['Condition']}",
        f"--restart-delay={template['RestartPolicy']['Delay']}ns",
        f"--entrypoint={executable}",
        container["Image"],
        *arguments,
    ]


def remove_labelled(label: str) -> None:
    """Remove the services, containers, networks, volumes, configs and secrets with a label, those that are paused too."""
    with ExitStack() as stack:
        for kind in ("volume", "network", "config", "secret"):
            stack.callback(_remove, kind, label)
        stack.callback(_remove_containers, label)
        _remove("service", label)


def _remove(kind: str, label: str) -> None:
    if ids := docker(kind, "ls", "--quiet", f"--filter=label={label}").split():
        docker(kind, "rm", *ids)


def _remove_containers(label: str) -> None:
    """The engine removes those of services that were removed; what it has not removed in time is removed by force."""
    try:
        gone = f"the end of all containers with {label}"
        until(lambda: not _containers(f"label={label}", all_states=True), gone, seconds=_REMOVE_SECONDS)
    except BenchError:
        if left := _containers(f"label={label}", all_states=True):
            docker("rm", "--force", "--volumes", *left)


def _containers(*filters: str, all_states: bool = False) -> list[str]:
    chosen = [f"--filter={text}" for text in filters]
    return docker("ps", "--quiet", *(["--all"] if all_states else []), *chosen).split()
