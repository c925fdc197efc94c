"""Calls between launchers, controller and backends: HTTP with JSON, over a Unix socket or TCP, with a token.

A launcher may make only the calls from launchers, and only for its own task: its token is derived from the cluster's and the hostname.

| call | from | effect |
|---|---|---|
| `PUT /run` | backend | this is the current run (JSON) |
| `PUT /code/HASH`, `GET /code/HASH` | backend, launcher | the code archive |
| `POST /sync` | launcher | a report; the response is the next order |
| `GET /restore/RUN`, `GET /restore/RUN/PATH` | launcher | the artifacts of a run in the record, for an empty `train_dir` |
| `GET /changes/NUMBER` | launcher | responds once orders have changed since this number of changes |
| `PUT /log/RUN/HOSTNAME/own/FIRST/AT/INSTANCE`, `…/apart/…` | launcher | lines of a piece of output; the response is its end |
| `GET /log/RUN/HOSTNAME` | launcher | the pieces of the task's output, and their sizes |
| `PUT /artifacts/RUN/HOSTNAME` | launcher | lists the files that it uploads; the response is how much of each is there |
| `PUT /artifacts/RUN/HOSTNAME/DRAFT/OFFSET` | launcher | a part of a file |
| `POST /artifacts/RUN/HOSTNAME/whole` | launcher | all parts of an artifact were sent; the response is what is wanted again |
| `POST /artifacts/RUN/HOSTNAME` | launcher | the upload has ended; what is left out |
| `PUT /dump/HOSTNAME/NUMBER` | launcher | the dump of its program that this request asks for |
| `POST /dumps`, `POST /dumps/arrived` | backend | ask all launchers for a dump of their program; what has arrived |
| `POST /view` | backend | the view of the current run |
| `POST /files` | backend | the files of the record, with the content of small ones |
| `POST /ranges` | backend | the bytes of ranges of these files |
| `POST /restarts` | backend | restart these tasks, one at a time |
| `POST /new-launcher` | backend | the user restarts or replaces a task |
| `POST /stop` | backend | stop the run, with or without its auxiliary tasks, or remove these tasks |
| `PUT /import`, `PUT /import/ranges` | backend | the files of another record, and ranges of those; the response is which are wanted |
| `POST /import` | backend | take it as the record, where there is none, or that of a run that has moved away |
| `GET /stopped` | backend | whether the run and its tasks have stopped |
| `GET /unfinished` | backend | which tasks have not stopped, and why the record cannot be written |
"""

import hashlib
import hmac
import http.client
import json
import os
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

UNIX = "unix:"
_MAX_SOCKET_PATH = 107
TOKEN_HEADER = "X-Tfdeploy-Token"
_LAUNCHERS = b"tfdeploy launchers"

DEFAULT_TIMEOUT = 5.0
"""Seconds that a call may take."""

_PART = 1024 * 1024

_MAX_RESPONSE = 256 * 1024 * 1024
"""A view with the most log lines that are allowed has a third of it."""

NO_RESPONSE = 3
"""The exit code of a relay whose peer does not respond."""

INTERRUPTED_CODE = 143
"""The exit code of launcher and controller after a signal: the backend must restart them then."""


def task_token(token: str, hostname: str) -> str:
    """The token of one task's launcher, which begins with the hostname. From it no other token can be computed."""
    key = hmac.new(token.encode(), _LAUNCHERS, hashlib.sha256).hexdigest()
    digest = hmac.new(key.encode(), hostname.encode("utf-8", "replace"), hashlib.sha256)
    return f"{hostname}:{digest.hexdigest()}"


def hostname_of(task_token: str) -> str:
    """The hostname in the token of a task; empty in other tokens."""
    return task_token.rpartition(":")[0]


class CallError(Exception):
    """The controller returned an error."""


class CallObsolete(CallError):
    """What the call is about is over, as an upload that has ended."""


GONE = 410
"""The status of such a response."""


@contextmanager
def socket_path(path: str) -> Iterator[str]:
    """A socket's path, as `bind` and `connect` take it: at most 107 bytes. A longer one begins at the descriptor of its folder."""
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        yield path
        return
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


class HttpConnection(http.client.HTTPConnection):
    """An HTTP connection to `unix:PATH` or `HOST:PORT`."""

    def __init__(self, address: str, timeout: float) -> None:
        self._unix = address[len(UNIX) :] if address.startswith(UNIX) else ""
        host, _, port = ("localhost", "", "80") if self._unix else address.rpartition(":")
        super().__init__(host, int(port), timeout=timeout)

    def connect(self) -> None:
        if not self._unix:
            super().connect()
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with socket_path(self._unix) as path:
            self.sock.connect(path)


class Client:
    """A connection to a controller, reused between calls. Not thread-safe."""

    def __init__(
        self, address: str, token: str, timeout: float = DEFAULT_TIMEOUT, shows_restarts: bool = False
    ) -> None:
        """With `shows_restarts` a call fails where the connection of the call before was closed, as by another controller."""
        self._address = address
        self._shows_restarts = shows_restarts
        self.token = token
        self._timeout = timeout
        self._open: Optional[http.client.HTTPConnection] = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """One call.

        Raises:
            OSError: the controller does not respond.
            CallError: it returned an error.
        """
        was_open = self._open is not None
        try:
            return self._call(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not was_open or self._shows_restarts or isinstance(error, socket.timeout):
                raise _as_os_error(error) from error
        try:
            return self._call(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _as_os_error(error) from error

    def _connect(self) -> http.client.HTTPConnection:
        """A new connection, with which the token is known."""
        return HttpConnection(self._address, self._timeout)

    def _call(self, method: str, path: str, body: bytes) -> bytes:
        if self._open is None:
            self._open = self._connect()
        self._open.request(method, path, body, {TOKEN_HEADER: self.token})
        response = self._open.getresponse()
        if response.length is None or response.length > _MAX_RESPONSE:
            self.close()
            raise CallError(
                f"{method} {path}: the response has {response.length} bytes, and {_MAX_RESPONSE} are allowed"
            )
        content = response.read()
        if response.status >= 300:
            kind = CallObsolete if response.status == GONE else CallError
            raise kind(f"{method} {path}: {response.status} {content.decode('utf-8', 'replace')}")
        return content

    def json(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """One call with JSON both ways."""
        return self.json_bytes(method, path, json.dumps(body or {}).encode())

    def json_bytes(self, method: str, path: str, body: bytes) -> Dict[str, Any]:
        """One call with a body of bytes and a response in JSON."""
        response: Dict[str, Any] = json.loads(self.call(method, path, body))
        return response

    def put_run(self, run: Dict[str, Any], code: str, archive: bytes) -> Dict[str, Any]:
        """Submit a run, after its code where it has some."""
        if archive:
            self.call("PUT", f"/code/{code}", archive)
        return self.json("PUT", "/run", run)

    def download(self, path: str, target: Path) -> None:
        """Write the response to a GET into a file, in parts.

        Raises:
            OSError: the controller does not respond, or the file cannot be written.
            CallError: it returned an error.
        """
        connection = self._connect()
        try:
            connection.request("GET", path, headers={TOKEN_HEADER: self.token})
            response = connection.getresponse()
            if response.status >= 300:
                raise CallError(f"GET {path}: {response.status} {response.read().decode('utf-8', 'replace')}")
            with target.open("wb") as file:
                while part := response.read(_PART):
                    file.write(part)
            if response.length:
                raise ConnectionError(f"GET {path}: the response ended {response.length} bytes early")
        except http.client.HTTPException as error:
            raise _as_os_error(error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _as_os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) else ConnectionError(f"broken response: {error!r}")
