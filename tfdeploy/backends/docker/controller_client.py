"""The controller of a cluster on a Swarm, called through the engine: `exec` in its container, without a published port."""

import io
import json
import tarfile
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from docker.errors import APIError

from ...agent.record import ViewRequest
from ...agent.remove_volumes import SERVICE
from ...agent.rpc import ERROR, CallError
from ...agent.run_state import RunState
from ...backends import controller_calls
from ...errors import BackendError, Unreachable
from ..base import CONTROLLER, ClusterRef
from ..record_copy import RecordCopy
from .engine import CALL_SECONDS, Engine
from .exec import STDERR, STDOUT, ExecStream
from .labels import cluster_filter, service_name
from .services import AGENT_COMMAND, TOKEN_FILE

_MAX_ARGUMENT = 60_000
"""A longer body travels as a file: on Linux one argument has at most 128 KiB."""

_PRIVATE = 0o600
"""The mode of that file: everybody on the machine may read the arguments of a process, but only root this file."""

_UPLOAD_FOLDER = "/tmp"


class ControllerClient:
    """Calls one cluster's controller. The contract is `backends.controller_calls.ControllerApi`."""

    def __init__(self, engine: Engine, cluster: ClusterRef) -> None:
        self._engine = engine
        self._cluster = cluster
        self._title = f"the controller of {cluster['name']}"

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Make one call.

        Raises:
            Unreachable: the engine, the controller's container or the controller does not respond.
            CallError: the controller refuses it.
        """
        return self._calls((method, path, body))

    def _calls(self, *requests: tuple[str, str, bytes]) -> bytes:
        """Calls by one command, because a command takes longer than a call; the response of the last."""
        files: dict[str, bytes] = {}
        arguments: list[str] = []
        for method, path, body in requests:
            text = _as_argument(method, body)
            if text is None:
                name = f"tfdeploy-{uuid.uuid4().hex}"
                files[name], text = body, f"@{_UPLOAD_FOLDER}/{name}"
            arguments += [method, path, text]
        try:
            container = self._container()
            if files:
                self._upload(container["Id"], files)
            command = [*AGENT_COMMAND, "call", _address(container), TOKEN_FILE, *arguments]
            return self._exec(container["Id"], command)
        except Unreachable:
            raise
        except (APIError, BackendError, OSError) as error:
            raise Unreachable(f"{self._title}: {error}") from None

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make one call with JSON in both directions."""
        return self._parsed(self.call(method, path, json.dumps(body or {}).encode()))

    def put_run(self, run: dict[str, Any], code: str, archive: bytes) -> dict[str, Any]:
        """Submit a run, after its code where it has some."""
        before = [("PUT", f"/code/{code}", archive)] if archive else []
        return self._parsed(self._calls(*before, ("PUT", "/run", json.dumps(run).encode())))

    def _parsed(self, response: bytes) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(response)
        except (
            ValueError,
            RecursionError,
        ):  # when the container ends before the command, the engine reports exit code 0
            raise Unreachable(f"{self._title} ended during the call") from None
        return content

    def container(self) -> str:
        """The id of the controller's running container.

        Raises:
            Unreachable: there is none.
        """
        return str(self._container()["Id"])

    def _container(self) -> Mapping[str, Any]:
        filters = cluster_filter(self._cluster)
        filters["label"].append(f"{SERVICE}={service_name(self._cluster, CONTROLLER)}")
        containers = self._engine.call(lambda api: api.containers(filters={**filters, "status": ["running"]}))
        if not containers:
            raise Unreachable(f"{self._title} does not run")
        newest: Mapping[str, Any] = max(containers, key=lambda item: item["Created"])
        return newest

    def _upload(self, container: str, files: Mapping[str, bytes]) -> None:
        """Write bodies to files in the container."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as writer:
            for name, body in files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(body), _PRIVATE
                writer.addfile(entry, io.BytesIO(body))
        self._engine.call(lambda api: api.put_archive(container, _UPLOAD_FOLDER, archive.getvalue()))

    def _exec(self, container: str, command: list[str]) -> bytes:
        stream = ExecStream(self._engine, container, command, timeout=CALL_SECONDS)
        output = {STDOUT: bytearray(), STDERR: bytearray()}
        try:
            while (part := stream.read())[1]:
                output[part[0]] += part[1]
            code = stream.exit_code()
        finally:
            stream.close()
        if code == 0:
            return bytes(output[STDOUT])
        text = (output[STDERR] or output[STDOUT]).decode("utf-8", "replace").strip()
        if code == ERROR:
            raise CallError(text)
        raise Unreachable(f"{self._title} does not respond ({text or f'exit code {code}'})")

    def current_run(self) -> RunState | None:
        """The current run; None where the controller has none, or does not respond."""
        with suppress(OSError, CallError):
            return controller_calls.view(self, ViewRequest()).run_state
        return None

    def silent_seconds(self, hostname: str) -> float | None:
        """How long the controller has received nothing from a launcher of this task; None where that is unknown. 0 where no program of
        it can run: there was none, or its launcher has reported its end after the task or the run had ended."""
        try:
            view = controller_calls.view(self, ViewRequest())
        except (OSError, CallError):
            return None
        run = view.run_state
        seen = run.seen(hostname) if run else 0.0
        return view.at - seen if seen else 0.0

    def task_machine(self, hostname: str) -> str | None:
        """The machine of a task's latest launcher; None or empty where that is unknown."""
        run = self.current_run()
        task = run.tasks.get(hostname) if run else None
        return task.machine if task else None

    def last_known_run(self) -> RunState | None:
        """The current run; from the copy of the record where the controller does not respond."""
        return self.current_run() or RecordCopy(self._cluster).record.current()


def _address(container: Mapping[str, Any]) -> str:
    """The address on which the controller listens in its container, from the command that the engine lists."""
    command: list[str] = container["Command"].split()
    return command[command.index("controller") + 2]


def _as_argument(method: str, body: bytes) -> str | None:
    """A short request as an argument of the command; None for what travels as a file: a run, code, whatever is stored."""
    if method == "PUT" or len(body) >= _MAX_ARGUMENT or body.startswith(b"@"):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
