"""A small disk under the record of a cluster on Docker, which is full when the controller comes back, and has space again later."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from tests.chaos.cluster import Running, Story
from tests.chaos.disk import DISK_BYTES
from tests.chaos.process_faults import CONTROLLER, later
from tests.chaos.schedule import Step
from tests.engine.cli import LABEL, DockerFailed
from tests.waiting import until

RECORD, COPY = "/record", "/copy/record.tar"

PACK = f"""\
import tarfile
with tarfile.open("{COPY}", "w") as tar:
    tar.add("{RECORD}", ".")
"""

KEEP = f"""\
import os, signal, sys, tarfile
with tarfile.open("{COPY}") as tar:
    tar.extractall("{RECORD}", numeric_owner=True)
filler = os.open("{RECORD}/filler", os.O_CREAT | os.O_WRONLY)
os.unlink("{RECORD}/filler")

def fill(*_):
    status = os.statvfs("{RECORD}")
    os.posix_fallocate(filler, 0, max(1, status.f_bavail - int(sys.argv[1]) // status.f_frsize) * status.f_frsize)

fill()
signal.signal(signal.SIGUSR1, lambda *_: os.ftruncate(filler, 0))
signal.signal(signal.SIGUSR2, fill)
print("full", flush=True)
while True:
    signal.pause()
"""
"""What the container runs: its file has no name, so that nobody finds it in the record; SIGUSR1 empties it."""

Docker = Callable[..., str]
"""Calls the docker command for the engine of the controller; what it prints."""


class RecordDisk:
    """The volume with the record, in memory. Another container mounts it too: it outlives the controller's containers."""

    def __init__(self, docker: Docker, image: str, service: str, volume: str) -> None:
        self._docker = docker
        self._image = image
        self._service = service
        self._volume = volume
        self._filler = f"{volume}-filler"

    def place(self, spare: int) -> None:
        """Stop the controller, move its record to a disk with no more than this many bytes, in whole pages, and start it again."""
        self._scale(0)
        try:
            # The Swarm retains containers that have ended, and a volume that they mount cannot be removed.
            mounts = ("--filter", f"volume={self._volume}")
            until(lambda: remove_ended(self._docker, *mounts), f"no container mounts {self._volume}")
            self._move(spare)
        finally:
            self._scale(1)

    def _move(self, spare: int) -> None:
        labels = json.loads(self._docker("volume", "inspect", "--format", "{{json .Labels}}", self._volume)) or {}
        own = [f"--label={key}={value}" for key, value in labels.items()]
        mounts = (f"--volume={self._volume}:{RECORD}", f"--volume={self._filler}:/copy", f"--label={LABEL}")
        self._docker("run", "--rm", *mounts, self._image, "python3", "-c", PACK)
        self._docker("volume", "rm", self._volume)
        memory = ("--opt=type=tmpfs", "--opt=device=tmpfs", f"--opt=o=size={DISK_BYTES}")
        self._docker("volume", "create", *own, *memory, self._volume)
        name = f"--name={self._filler}"
        self._docker("run", "--detach", name, *mounts, self._image, "python3", "-c", KEEP, str(spare))
        until(lambda: "full" in self._docker("logs", self._filler), f"{self._volume} is full", seconds=60)

    def fill(self) -> None:
        """Be full again."""
        self._docker("kill", "--signal=USR2", self._filler)

    def free(self) -> None:
        """Have space again."""
        with suppress(DockerFailed):
            self._docker("kill", "--signal=USR1", self._filler)

    def release(self) -> None:
        """Let the volume be removed; what is on it goes with the last container that mounts it."""
        with suppress(DockerFailed):
            self._docker("rm", "--force", self._filler)
        with suppress(DockerFailed):
            self._docker("volume", "rm", "--force", self._filler)

    def _scale(self, replicas: int) -> None:
        self._docker("service", "scale", "--detach", f"{self._service}={replicas}")


def remove_ended(docker: Docker, *filters: str) -> bool:
    """Remove the ended containers that these filters of docker's listings find, once none of them runs; whether all are gone."""
    containers = ("ps", "--all", "--quiet", *filters)
    running = docker(*containers, "--filter", "status=running").split()
    ended = [] if running else docker(*containers).split()
    with suppress(DockerFailed):
        if ended:
            docker("rm", "--force", *ended)
    return not running and not docker(*containers)


def find(docker: Docker, image: str, *filters: str) -> RecordDisk | None:
    """What can be under the record of the cluster that these filters of docker's listings find; None where there is no record."""
    with suppress(DockerFailed, StopIteration):
        services = docker("service", "ls", "--format", "{{.Name}}", *filters).split()
        volumes = docker("volume", "ls", "--quiet", *filters).split()
        service = next(name for name in services if name.endswith(f"-{CONTROLLER}"))
        return RecordDisk(docker, image, service, next(name for name in volumes if name.endswith("-record")))
    return None


class WithRecordDisk(Protocol):
    """What the fault needs of a cluster."""

    story: Story
    record_disk: RecordDisk | None

    def find_record_disk(self) -> RecordDisk | None: ...


def fill_disk(cluster: WithRecordDisk, step: Step, running: Running | None, has_space_later: bool = True) -> str:
    """The controller comes back to a disk that is full but for a few bytes, and has space again later."""
    spare = int(step.amount * 8192)
    if cluster.record_disk:
        cluster.record_disk.fill()
    elif disk := cluster.find_record_disk():
        cluster.record_disk = disk
        disk.place(spare)
    else:
        return ""
    if not has_space_later:
        return f"the record's disk is full but for {spare} bytes"
    later(cluster.story, 3 * step.seconds, cluster.record_disk.free)
    return f"the record's disk is full but for {spare} bytes for {3 * step.seconds:.1f} s"


def release(cluster: WithRecordDisk) -> None:
    """Before the volume is removed."""
    if cluster.record_disk:
        cluster.record_disk.release()
        cluster.record_disk = None
