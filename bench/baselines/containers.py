"""A TensorFlow cluster in containers, with the docker command and nothing else."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from .by_hand import free_ports

_PAUSE = 0.1
_PATIENCE = 300.0


def docker(*arguments: str) -> str:
    """What a docker command prints."""
    done = subprocess.run(["docker", *arguments], check=False, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"docker {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def hosts(addresses: Sequence[str]) -> list[str]:
    """The two flags that name all tasks."""
    return [f"--ps_hosts={addresses[0]}", f"--worker_hosts={','.join(addresses[1:])}"]


def tasks(workers: int) -> list[tuple[str, int]]:
    """Job and index of each task: one ps, some workers."""
    return [("ps", 0), *[("worker", index) for index in range(workers)]]


@contextmanager
def containers(name: str, image: str, code: Path, workers: int, command: Sequence[str]) -> Iterator[list[str]]:
    """One ps and some workers by `docker run`, on the machine's own network; the names of their containers."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(1 + workers)]
    made: list[str] = []
    try:
        for job, index in tasks(workers):
            flags = [f"--job_name={job}", f"--task_index={index}", *hosts(addresses)]
            made.append(f"{name}-{job}-{index}")
            options = ["--detach", "--init", "--network=host", f"--name={made[-1]}", f"--volume={code}:/code:ro"]
            docker("run", *options, "--workdir=/code", image, "python", "-u", *command, *flags)
        yield made
    finally:
        docker("rm", "--force", "--volumes", *made)


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
                "command": [
                    "python",
                    "-u",
                    *self._command,
                    f"--job_name={job}",
                    f"--task_index={index}",
                    *hosts(addresses),
                ],
                "deploy": {"endpoint_mode": "dnsrr"},
            }
            for job, index in tasks(self._workers)
        }
        # JSON is YAML.
        file = self._code / "stack.yaml"
        file.write_text(json.dumps({"version": "3.7", "services": services}))
        docker("stack", "deploy", "--resolve-image=never", f"--compose-file={file}", self._name)

    def said(self, task: str) -> str:
        """What the containers of a task that run have printed."""
        service = f"label=com.docker.swarm.service.name={self._name}_{task}"
        found = docker("ps", "--quiet", "--filter", service).split()
        return "\n".join(docker("logs", container) for container in found[:1])

    def remove(self) -> None:
        """Everything that was made."""
        docker("stack", "rm", self._name)
        gone(f"label=com.docker.stack.namespace={self._name}")
        for image in self._images:
            docker("image", "rm", "--force", image)


@contextmanager
def services(name: str, image: str, count: int, at_once: int, command: Sequence[str]) -> Iterator[float]:
    """So many services on a network of theirs; the seconds until all of their containers run."""
    label = f"{name}=yes"
    docker("network", "create", "--driver=overlay", name)
    try:
        begun = time.perf_counter()
        options = ["--detach", "--quiet", "--no-resolve-image", "--endpoint-mode=dnsrr", f"--network={name}"]
        marks = [f"--label={label}", f"--container-label={label}"]

        def create(number: int) -> None:
            docker("service", "create", *options, *marks, f"--name={name}-{number}", image, *command)

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(create, range(count)))
        running = f"label={label}", "status=running"
        _until(lambda: len(_containers(*running)) == count, f"{count} containers")
        yield time.perf_counter() - begun
    finally:
        if made := docker("service", "ls", "--quiet", "--filter", f"label={label}").split():
            docker("service", "rm", *made)
        gone(f"label={label}")
        docker("network", "rm", name)


def gone(label: str) -> None:
    """Wait until no container with a label is left."""
    _until(lambda: not _containers(label, all_states=True), f"the end of all containers with {label}")


def _containers(*filters: str, all_states: bool = False) -> list[str]:
    chosen = [f"--filter={text}" for text in filters]
    return docker("ps", "--quiet", *(["--all"] if all_states else []), *chosen).split()


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {_PATIENCE:g} s")
        time.sleep(_PAUSE)
