"""A command in the container of a pod, with its standard streams over one connection: the official client's, with our waiting."""

import json
import select
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from kubernetes.stream.ws_client import (
    ERROR_CHANNEL,
    RESIZE_CHANNEL,
    STDERR_CHANNEL,
    STDIN_CHANNEL,
    STDOUT_CHANNEL,
    WSClient,
)
from websocket import WebSocketException

from ...errors import BackendError, Forbidden, Unreachable
from ..terminal import STDERR, STDOUT, CommandStream
from .api import CALL_SECONDS, FORBIDDEN, ApiError, ApiServer
from .permissions import NEEDED_ROLE
from .pods import CONTAINER
from .states import is_node_silent

_CHUNK = 1 << 16


class PodCommand(CommandStream):
    """One command that runs in a pod."""

    def __init__(
        self, api: ApiServer, pod: str, command: Sequence[str], env: Mapping[str, str] = {}, tty: bool = False
    ) -> None:
        """Start the command.

        Raises:
            Forbidden: the user may not run commands in pods.
            Unreachable: the API server does not respond, or refuses the command.
        """
        self.tty = tty
        self._lock = threading.Lock()
        """Of the connection: two threads must not use one connection by TLS at the same time."""
        variables = [f"{name}={value}" for name, value in env.items()]
        words = ["env", *variables, *command] if variables else list(command)
        options = {
            "container": CONTAINER,
            "stdin": "true",
            "stdout": "true",
            "stderr": str(not tty).lower(),
            "tty": str(tty).lower(),
        }
        self._api, self._path = api, f"/api/v1/namespaces/{api.namespace}/pods/{pod}"
        query = urlencode([*(("command", word) for word in words), *options.items()])
        url = f"{api.server}{self._path}/exec?{query}".replace("http", "ws", 1)
        try:
            self._stream = WSClient(api.client.configuration, url, api.authorization(), capture_all=False, binary=True)
        except (WebSocketException, OSError) as error:
            if getattr(error, "status_code", 0) == FORBIDDEN:
                raise Forbidden(f"you may not run commands in pods of {api.namespace}. {NEEDED_ROLE}") from None
            raise Unreachable(f"a command in the pod {pod} did not start ({error})") from None

    def send(self, data: bytes | memoryview) -> None:
        """Send input; OSError when the command does not read it any more."""
        self._write(STDIN_CHANNEL, bytes(data))

    def _write(self, channel: int, data: bytes) -> None:
        try:
            with self._lock:
                for start in range(0, len(data), _CHUNK):
                    self._stream.write_channel(channel, data[start : start + _CHUNK])
        except WebSocketException as error:
            raise BrokenPipeError(str(error)) from None

    def end(self) -> None:
        """Close the input. API servers before 1.30 cannot."""
        with suppress(WebSocketException), self._lock:
            self._stream.close_channel(STDIN_CHANNEL)

    def read(self) -> tuple[int, bytes]:
        """The next output, after STDOUT or STDERR; empty at the end."""
        while True:
            for channel, kind in ((STDOUT_CHANNEL, STDOUT), (STDERR_CHANNEL, STDERR)):
                if data := self._stream._channels.pop(channel, b""):
                    return kind, data
            if not self._stream.is_open():
                return STDOUT, b""
            self._wait()

    def _wait(self) -> None:
        connection = self._stream.sock.sock
        pending = getattr(connection, "pending", lambda: 0)
        try:
            while not pending() and not select.select([connection], [], [], CALL_SECONDS)[0]:
                self._refuse_silent_node()
            with self._lock:
                self._stream.update(timeout=0)
        except Unreachable:
            raise
        except (WebSocketException, OSError, ValueError):  # closed meanwhile
            self._stream._connected = False

    def _refuse_silent_node(self) -> None:
        """The API server holds a connection to a kubelet that does not respond, for ever.

        Raises:
            Unreachable: it does not.
        """
        pod: Mapping[str, Any] | None = None
        with suppress(ApiError, Unreachable):
            pod = self._api.get(self._path)
        if pod is not None and is_node_silent(pod):
            raise Unreachable(f"the node {pod['spec'].get('nodeName', '')} does not respond")

    def resize(self, rows: int, columns: int) -> bool:
        """Set the size of the terminal."""
        with suppress(OSError):
            self._write(RESIZE_CHANNEL, json.dumps({"Width": columns, "Height": rows}).encode())
            return True
        return False

    def exit_code(self) -> int:
        """The exit code, once the output has ended.

        Raises:
            Unreachable: the connection ended before the command.
            BackendError: the command did not start.
        """
        with suppress(ValueError, KeyError, IndexError):
            status = json.loads(self._stream._channels.get(ERROR_CHANNEL, b""))
            if status["status"] == "Success":
                return 0
            causes = {cause["reason"]: cause["message"] for cause in (status.get("details") or {}).get("causes") or ()}
            if "ExitCode" in causes:
                return int(causes["ExitCode"])
            raise BackendError(str(status.get("message")))
        raise Unreachable("the connection to the command ended before the command did")

    def close(self) -> None:
        """Close the connection."""
        with suppress(WebSocketException, OSError):
            self._stream.close()
