"""The keeper of a cluster on a Swarm, reached through the engine: `exec` in its container, no port of its own."""

import io
import json
import tarfile
import uuid
from contextlib import suppress
from typing import Any

from docker.errors import APIError

from ...agent.call import REFUSED
from ...agent.forget import SERVICE
from ...agent.protocol import CallError
from ...agent.states import Job
from ...errors import BackendError, Unreachable
from ..base import KEEPER, Cluster
from . import names
from .engine import SECONDS, Engine
from .services import PYTHON, TOKEN
from .streams import STDERR, STDOUT, Stream

_LONGEST_ARGUMENT = 60_000
"""Longer bodies travel as a file: Linux takes no single argument over 128 KiB."""

_FOLDER = "/tmp"


class ExecKeeper:
    """The calls of `agent.protocol` to one cluster's keeper (`keeping.Keeper`)."""

    def __init__(self, engine: Engine, cluster: Cluster) -> None:
        self._engine = engine
        self._cluster = cluster

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """One call.

        Raises:
            Unreachable: the engine, the keeper's container or the keeper does not answer.
            CallError: it answered with a no.
        """
        try:
            text = body.decode() if len(body) < _LONGEST_ARGUMENT and not body.startswith(b"@") else None
        except UnicodeDecodeError:
            text = None
        try:
            container = self.container()
            address = self._address(container)
            last = self._sent(container, body) if text is None else text
            return self._exec(container, [*PYTHON, "call", address, TOKEN, method, path, last])
        except Unreachable:
            raise
        except (APIError, BackendError, OSError) as error:
            raise Unreachable(f"the keeper of {self._cluster['name']}: {error}") from None

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One call with JSON both ways."""
        answer = self.call(method, path, json.dumps(body or {}).encode())
        try:
            found: dict[str, Any] = json.loads(answer)
        except ValueError:  # the engine says 0 of a command whose container ended under it
            raise Unreachable(f"the keeper of {self._cluster['name']} was cut short") from None
        return found

    def container(self) -> str:
        """The running container of the keeper.

        Raises:
            Unreachable: there is none.
        """
        filters = names.filters(self._cluster)
        filters["label"].append(f"{SERVICE}={names.service(self._cluster, KEEPER)}")
        found = self._engine.call(lambda api: api.containers(filters={**filters, "status": ["running"]}))
        if not found:
            raise Unreachable(f"the keeper of {self._cluster['name']} does not run")
        newest: str = max(found, key=lambda item: item["Created"])["Id"]
        return newest

    def _address(self, container: str) -> str:
        """The address on which the keeper listens inside it."""
        command: list[str] = self._engine.call(lambda api: api.inspect_container(container))["Args"]
        return command[command.index("keep") + 2]

    def _sent(self, container: str, body: bytes) -> str:
        """Lay the body down in the container; the argument that names it."""
        buffer = io.BytesIO()
        name = f"tfdeploy-{uuid.uuid4().hex}"
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            item = tarfile.TarInfo(name)
            item.size = len(body)
            archive.addfile(item, io.BytesIO(body))
        self._engine.call(lambda api: api.put_archive(container, _FOLDER, buffer.getvalue()))
        return f"@{_FOLDER}/{name}"

    def _exec(self, container: str, command: list[str]) -> bytes:
        stream = Stream(self._engine, container, command, seconds=SECONDS)
        said = {STDOUT: bytearray(), STDERR: bytearray()}
        try:
            while (part := stream.read())[1]:
                said[part[0]] += part[1]
            code = stream.code()
        finally:
            stream.close()
        if code == 0:
            return bytes(said[STDOUT])
        text = (said[STDERR] or said[STDOUT]).decode("utf-8", "replace").strip()
        if code == REFUSED:
            raise CallError(text)
        raise Unreachable(f"the keeper of {self._cluster['name']} does not answer ({text or f'exit {code}'})")


def keeper_of(cluster: Cluster) -> ExecKeeper:
    """The keeper of a cluster."""
    return ExecKeeper(Engine(cluster["home"]), cluster)


def present_job(cluster: Cluster) -> Job | None:
    """The present job as the keeper has it; None where it has none, or does not answer."""
    with suppress(OSError, CallError):
        data = keeper_of(cluster).json("POST", "/look", {"log_lines": 0, "metrics": {}})["job"]
        return Job.from_dict(data) if data else None
    return None
