"""The controller of a cluster on a Swarm, called by HTTP through the engine, without a published port: a command in its container
(`agent.call_relay`) relays a connection as long as needed."""

import http.client
import inspect
import io
import re
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from docker.errors import APIError

from ....agent.record.record import ViewRequest
from ....agent.remove_volumes import SERVICE
from ....agent.wire import call_relay
from ....agent.wire.rpc import CallError, Client
from ....errors import BackendError, Unreachable
from ... import controller_calls
from ...base import CONTROLLER, ClusterRef
from ...container_runner import ContainerController
from ...record_copy import RecordCopy
from ..labels import cluster_filter, service_name
from ..swarm.confirmed_end import FormerLauncher
from ..swarm.services import TOKEN_FILE
from .connection import CALL_SECONDS
from .engine import Engine
from .exec import ExecStream

_CHUNK = 1 << 16
_TOKEN = re.compile(rb"^%b(\S+)\n" % call_relay.TOKEN_MARK, re.MULTILINE)


def relay_command(host: str, port: str) -> list[str]:
    """The command that prints the token and relays a connection. It works with every version of the agent."""
    return ["python3", "-I", "-S", "-c", inspect.getsource(call_relay), host, port, TOKEN_FILE]


class Relay(Client):
    """Calls over one connection, which is opened when it is needed; threads share it."""

    def __init__(self, start: Callable[[], ExecStream]) -> None:
        """`start` runs the command."""
        super().__init__("", "", CALL_SECONDS)
        self._start = start
        self._lock = threading.Lock()
        self._stream: ExecStream | None = None

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """As that of `Client`, when no other thread calls."""
        with self._lock:
            return super().call(method, path, body)

    def _connect(self) -> http.client.HTTPConnection:
        self._stream = self._start()
        relayed = _Relayed(self._stream)
        try:
            self.token = relayed.read_token()
        except OSError:
            self.close()
            raise
        connection = http.client.HTTPConnection("controller")
        connection.sock, connection.auto_open = cast(socket.socket, relayed), 0
        return connection

    def close(self) -> None:
        """Close the connection, and so end the command; the next call opens another."""
        super().close()
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class _Relayed(io.RawIOBase):
    """The part of a socket's interface that `http.client` needs."""

    def __init__(self, stream: ExecStream) -> None:
        self._stream = stream
        self._received = b""

    def read_token(self) -> str:
        """The token, which the command prints once it is connected.

        Raises:
            ConnectionError: it has ended; the message is its own.
        """
        while not (token := _TOKEN.search(self._received)):
            data = self._stream.receive()
            if not data:
                output, _, _ = self._received.partition(call_relay.TOKEN_MARK)
                text = self._stream.why() or output.decode("utf-8", "replace").strip()
                raise ConnectionError(text or "the command that connects to it has ended")
            self._received += data
        self._received = self._received[token.end() :]
        return token[1].decode()

    def sendall(self, data: bytes) -> None:
        """Send bytes in parts, so that the timeout is that of a part. When nothing reads them any more, the output has the reason."""
        view = memoryview(data)
        with suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, len(view), _CHUNK):
                self._stream.send(view[start : start + _CHUNK])

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived; 0 at the end."""
        data = self._received or self._stream.receive()
        count = min(len(data), len(buffer))
        buffer[:count], self._received = data[:count], data[count:]
        return count

    def makefile(self, mode: str) -> io.BufferedReader:
        """A reader of one response."""
        return io.BufferedReader(self, _CHUNK)

    def close(self) -> None:
        """Nothing: a response may still have to be read. `Relay.close` closes the connection."""


_RELAYS: dict[tuple[str, str], Relay] = {}


def shared_relay(engine: str, service: str, start: Callable[[], ExecStream]) -> Relay:
    """The relay of this process to the controller that is this service on the engine at this address."""
    return _RELAYS.setdefault((engine, service), Relay(start))


class ControllerClient(ContainerController):
    """Calls one cluster's controller through the relay of this process."""

    def __init__(self, engine: Engine, cluster: ClusterRef) -> None:
        super().__init__(cluster)
        self._engine = engine

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Make one call.

        Raises:
            Unreachable: the engine, the controller's container or the controller does not respond.
            CallError: the controller refuses it.
        """
        relay = shared_relay(self._engine.host, service_name(self.cluster, CONTROLLER), self._start_relay)
        try:
            return relay.call(method, path, body)
        except Unreachable:
            raise
        except (APIError, BackendError) as error:
            raise Unreachable(f"{self.title}: {error}") from None
        except OSError as error:
            raise Unreachable(f"{self.title} does not respond ({error})") from None

    def _start_relay(self) -> ExecStream:
        container = self._container()
        host, _, port = _address(container).rpartition(":")
        return ExecStream(self._engine, container["Id"], relay_command(host, port), timeout=CALL_SECONDS)

    def container(self) -> str:
        """The id of the controller's running container.

        Raises:
            Unreachable: there is none.
        """
        return str(self._container()["Id"])

    def _container(self) -> Mapping[str, Any]:
        filters = cluster_filter(self.cluster)
        filters["label"].append(f"{SERVICE}={service_name(self.cluster, CONTROLLER)}")
        containers = self._engine.call(lambda api: api.containers(filters={**filters, "status": ["running"]}))
        if not containers:
            raise Unreachable(f"{self.title} does not run")
        newest: Mapping[str, Any] = max(containers, key=lambda item: item["Created"])
        return newest

    def former_launcher(self, hostname: str, machine: str = "") -> FormerLauncher:
        """The latest launcher of this task; from the copy of the record where the controller does not respond. `machine` is its machine
        where neither knows it."""
        try:
            view = controller_calls.view(self, ViewRequest())
            run, at = view.run_state, view.at
        except (OSError, CallError):
            run, at = RecordCopy(self.cluster).record.current(), None
        task = run.tasks.get(hostname) if run else None
        seen = run.seen(hostname) if run else 0.0
        silent = None if at is None else at - seen if seen else 0.0
        return FormerLauncher((task.report.machine if task else "") or machine, silent)


def _address(container: Mapping[str, Any]) -> str:
    """The address on which the controller listens in its container, from the command that the engine lists."""
    command: list[str] = container["Command"].split()
    return command[command.index("controller") + 2]
