"""The controller of a cluster on a Swarm, called through the engine: `exec` in its container, without a published port."""

import io
import json
import tarfile
import uuid
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
        text = _as_argument(method, body)
        try:
            container = self.container()
            address = self._address(container)
            argument = self._upload(container, body) if text is None else text
            return self._exec(container, [*AGENT_COMMAND, "call", address, TOKEN_FILE, method, path, argument])
        except Unreachable:
            raise
        except (APIError, BackendError, OSError) as error:
            raise Unreachable(f"{self._title}: {error}") from None

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make one call with JSON in both directions."""
        response = self.call(method, path, json.dumps(body or {}).encode())
        try:
            content: dict[str, Any] = json.loads(response)
        except ValueError:  # when the container ends before the command, the engine reports exit code 0
            raise Unreachable(f"{self._title} ended during the call") from None
        return content

    def container(self) -> str:
        """The id of the controller's running container.

        Raises:
            Unreachable: there is none.
        """
        filters = cluster_filter(self._cluster)
        filters["label"].append(f"{SERVICE}={service_name(self._cluster, CONTROLLER)}")
        containers = self._engine.call(lambda api: api.containers(filters={**filters, "status": ["running"]}))
        if not containers:
            raise Unreachable(f"{self._title} does not run")
        newest: str = max(containers, key=lambda item: item["Created"])["Id"]
        return newest

    def _address(self, container: str) -> str:
        """The address on which the controller listens in its container."""
        command: list[str] = self._engine.call(lambda api: api.inspect_container(container))["Args"]
        return command[command.index("controller") + 2]

    def _upload(self, container: str, body: bytes) -> str:
        """Write the body to a file in the container; the argument that names it."""
        archive = io.BytesIO()
        name = f"tfdeploy-{uuid.uuid4().hex}"
        with tarfile.open(fileobj=archive, mode="w") as writer:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), _PRIVATE
            writer.addfile(entry, io.BytesIO(body))
        self._engine.call(lambda api: api.put_archive(container, _UPLOAD_FOLDER, archive.getvalue()))
        return f"@{_UPLOAD_FOLDER}/{name}"

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


def _as_argument(method: str, body: bytes) -> str | None:
    """A short request as an argument of the command; None for what travels as a file: a run, code, whatever is stored."""
    if method == "PUT" or len(body) >= _MAX_ARGUMENT or body.startswith(b"@"):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
