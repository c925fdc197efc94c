"""The containers on a machine that leaves its Swarm because that has lost its manager.

To leave a Swarm kills them. So they are stopped before, in order: a program saves its checkpoint. What their launchers have stored
meanwhile, because there was no controller, is added to the copy of the record on this computer.
"""

import shutil
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from docker.errors import NotFound

from ...agent.record.record_files import grows
from .. import lost_record
from ..base import CONTROLLER, ClusterRef
from ..container_layout import TASK_FOLDER
from ..parallel_calls import for_all
from ..record_copy import RecordCopy
from .engine.engine import Engine
from .labels import cluster_filter, service_name
from .swarm.services import stop_timeout

_MAX_BYTES = 2 << 30
"""So much of the output of one task is added at most."""

_STORED = ("spool", "exit.json")
"""What a launcher stores of output and of the end of its program."""

_SERVICE = "com.docker.swarm.service.name"


def stop_containers(engine: Engine, cluster: ClusterRef, machine: str, log: Callable[[str], None]) -> None:
    """Stop the launchers of a cluster on a machine, and store in the copy what they could not report.

    Raises:
        BackendError: one cannot be stopped.
    """
    found = engine.call(lambda api: api.containers(all=True, filters=cluster_filter(cluster)))
    newest: dict[str, str] = {}
    for item in sorted(found, key=lambda item: float(item["Created"])):
        newest[item["Labels"].get(_SERVICE, "").removeprefix(service_name(cluster, ""))] = item["Id"]
    newest.pop(CONTROLLER, None)
    if newest:
        log(f"{machine}: leaves the Swarm of the former manager; stopping {', '.join(sorted(newest))}")
    run = RecordCopy(cluster).record.current()
    timeout = int(stop_timeout(run.spec.grace if run else 0.0))

    def stop(hostname: str) -> None:
        with suppress(NotFound), tempfile.TemporaryDirectory(prefix="tfdeploy-") as folder:
            engine.call(lambda api: api.stop(newest[hostname], timeout=timeout))
            for name in _STORED:
                with suppress(NotFound), tempfile.TemporaryFile() as archive:
                    engine.call(partial(_fetch, newest[hostname], f"{TASK_FOLDER}/{name}", archive))
                    _extract(archive, hostname, Path(folder))
            lost_record.add_left(cluster, hostname, Path(folder))

    for_all(list(newest), stop)


def _fetch(container: str, path: str, target: IO[bytes], api: Any) -> None:
    """The archive of a path in a container, as far as it is not too large."""
    parts, _ = api.get_archive(container, path)
    target.seek(0)
    target.truncate()
    for part in parts:
        if target.tell() < _MAX_BYTES:
            target.write(part)


def _extract(archive: IO[bytes], hostname: str, folder: Path) -> None:
    """Extract what launchers store, and nothing else: programs may have written to it. An archive that was too large ends early."""
    archive.seek(0)
    with suppress(tarfile.ReadError), tarfile.open(fileobj=archive) as members:
        for member in members:
            content = members.extractfile(member) if member.isreg() and _is_stored(member.name, hostname) else None
            if content is not None:
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)


def _is_stored(name: str, hostname: str) -> bool:
    """Whether it is the end of a program, or output of the task."""
    folder, _, path = name.partition("/")
    run, _, piece = path.partition("/")
    return name == _STORED[1] or (folder == _STORED[0] and grows(f"runs/{run}/logs/{hostname}/{piece}"))
