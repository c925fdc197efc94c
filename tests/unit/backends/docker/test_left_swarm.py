"""What is taken from the containers of a machine that leaves its Swarm: the newest of each task, and only what a launcher stores."""

import io
import tarfile
from pathlib import Path
from typing import Any, cast

import pytest
from docker.errors import NotFound

from tests.clusters import cluster_ref
from tests.unit.backends.docker.fake_engine import FakeApi
from tfdeploy.backends import lost_record
from tfdeploy.backends.container_layout import TASK_FOLDER
from tfdeploy.backends.docker import left_swarm
from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.labels import service_name

CLUSTER = cluster_ref("docker")
SEGMENT = "spool/a1/0.log"


def archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as target:
        for name, content in files.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            target.addfile(item, io.BytesIO(content))
        link = tarfile.TarInfo("spool/a1/1.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        target.addfile(link)
    return buffer.getvalue()


class Machine(FakeApi):
    """An engine with two containers of worker-0, the former one of which has ended, and the controller's."""

    def __init__(self) -> None:
        self.stopped: list[tuple[str, int]] = []
        self.archives = {"spool": archive(**{SEGMENT: b"last words"}), "exit.json": archive(**{"exit.json": b"{}"})}

    def containers(self, **_: Any) -> list[dict[str, Any]]:
        names = [("new", "worker-0", 2), ("old", "worker-0", 1), ("c", "controller", 3), ("gone", "worker-1", 1)]
        label = "com.docker.swarm.service.name"
        return [{"Id": one, "Created": at, "Labels": {label: service_name(CLUSTER, name)}} for one, name, at in names]

    def stop(self, container: str, timeout: int) -> None:
        if container == "gone":
            raise NotFound(container)
        self.stopped.append((container, timeout))

    def get_archive(self, container: str, path: str) -> tuple[list[bytes], None]:
        assert container == "new"
        content = self.archives.get(path.removeprefix(f"{TASK_FOLDER}/"))
        if content is None:
            raise NotFound(path)
        return [content[:300], content[300:]], None


def left(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    files: dict[str, bytes] = {}

    def add(cluster: object, hostname: str, folder: Path) -> None:
        assert (cluster, hostname) == (CLUSTER, "worker-0")
        found = [path for path in folder.rglob("*") if path.is_file()]
        files.update({path.relative_to(folder).as_posix(): path.read_bytes() for path in found})

    monkeypatch.setattr(lost_record, "add_left", add)
    left_swarm.stop_containers(cast(Engine, machine), CLUSTER, "m0", lambda _: None)
    return files


def test_the_newest_container_of_each_task_is_stopped_and_read_but_nothing_else_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    assert left(machine, monkeypatch) == {SEGMENT: b"last words", "exit.json": b"{}"}
    assert machine.stopped == [("new", 60)]
    strange = ("spool/a1/code.py", "../exit.json", "spool/../x/0.log", "/spool/a1/1.log")
    machine.archives = {"spool": archive(**{SEGMENT: b"mine", **dict.fromkeys(strange, b"x")})}
    assert left(machine, monkeypatch) == {SEGMENT: b"mine"}
