"""HTTP to a controller through a command in its container, which relays it as long as needed (`agent.call_relay`)."""

import http.client
import inspect
import io
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from ....agent.transport import call_relay
from ....agent.transport.rpc import Client
from ..swarm.services import TOKEN_FILE
from .engine import CALL_SECONDS
from .exec import ExecConnection

_CHUNK = 1 << 16
_TOKEN = re.compile(rb"^%b(\S+)\n" % call_relay.TOKEN_MARK, re.MULTILINE)


def relay_command(host: str, port: str) -> list[str]:
    """The command that prints the token and relays a connection. It works with every version of the agent."""
    return ["python3", "-I", "-S", "-c", inspect.getsource(call_relay), host, port, TOKEN_FILE]


class Relay(Client):
    """Calls over one connection, which is opened when it is needed; threads share it."""

    def __init__(self, start: Callable[[], ExecConnection]) -> None:
        """`start` runs the command."""
        super().__init__("", "", CALL_SECONDS)
        self._start = start
        self._lock = threading.Lock()
        self._stream: ExecConnection | None = None

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


class _Relayed:
    """The part of a socket's interface that `http.client` needs."""

    def __init__(self, stream: ExecConnection) -> None:
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

    def receive_into(self, buffer: Any) -> int:
        """Read what has arrived; 0 at the end."""
        data = self._received or self._stream.receive()
        count = min(len(data), len(buffer))
        buffer[:count], self._received = data[:count], data[count:]
        return count

    def makefile(self, mode: str) -> io.BufferedReader:
        """A reader of one response."""
        return io.BufferedReader(_Response(self), _CHUNK)

    def close(self) -> None:
        """Nothing: a response may still have to be read. `Relay.close` closes the connection."""


class _Response(io.RawIOBase):
    def __init__(self, relayed: _Relayed) -> None:
        self._relayed = relayed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._relayed.receive_into(buffer)


_RELAYS: dict[tuple[str, str], Relay] = {}


def shared_relay(engine: str, service: str, start: Callable[[], ExecConnection]) -> Relay:
    """The relay of this process to the controller that is this service on the engine at this address."""
    return _RELAYS.setdefault((engine, service), Relay(start))
