"""How launchers, keeper and the hands of a backend speak: HTTP with JSON, over a Unix socket or TCP, with a token.

| call | from | what |
|---|---|---|
| `PUT /run` | a backend's hands | this is the run from now on (JSON) |
| `PUT /code/HASH`, `GET /code/HASH` | hands, launcher | the archive of code |
| `POST /sync` | launcher | a report; the answer is the next order |
| `PUT /log/RUN/HOSTNAME/STREAM/POSITION` | launcher | bytes of a log; the answer is the end of what is kept |
| `GET /log/RUN/HOSTNAME` | launcher | the ends of the three streams |
| `POST /look` | anyone with the token | what has been seen: see `record.view` |
| `POST /copy` | anyone with the token | what the record has beyond a copy of it: see `copying.beyond` |
| `POST /roll` | hands | restart these tasks, one at a time |
| `POST /again` | hands | a task is about to get another launcher by the user's word |
| `POST /stop` | hands | the job, or these tasks, are to stop by the user's word |
"""

import http.client
import json
import socket
from typing import Any, Dict, Optional

UNIX = "unix:"
TOKEN_HEADER = "X-Tfdeploy-Token"
DEFAULT_TIMEOUT = 5.0
"""Seconds that a call may take."""

INTERRUPTED_CODE = 143
"""What launcher and keeper exit with when they were told to stop by a signal: the engine must not take that for their end."""


class CallError(Exception):
    """The other side answered, but with a no."""


class Connection(http.client.HTTPConnection):
    """HTTP with whoever listens at an address: `unix:` and the path of a socket, else a host and a port."""

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
        self.sock.connect(self._unix)


class Client:
    """One connection to a keeper, kept open between calls. Not for use by several threads at once."""

    def __init__(self, address: str, token: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._address = address
        self.token = token
        self._timeout = timeout
        self._open: Optional[Connection] = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """One call.

        Raises:
            OSError: the keeper does not answer.
            CallError: it answered with a no.
        """
        kept = self._open
        try:
            return self._call(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if kept is None or isinstance(error, socket.timeout):
                raise _as_os_error(error) from error
        try:
            return self._call(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _as_os_error(error) from error

    def _call(self, method: str, path: str, body: bytes) -> bytes:
        if self._open is None:
            self._open = Connection(self._address, self._timeout)
        self._open.request(method, path, body, {TOKEN_HEADER: self.token})
        answer = self._open.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise CallError(f"{method} {path}: {answer.status} {content.decode('utf-8', 'replace')}")
        return content

    def json(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """One call with JSON both ways."""
        return self.json_bytes(method, path, json.dumps(body or {}).encode())

    def json_bytes(self, method: str, path: str, body: bytes) -> Dict[str, Any]:
        """One call with bytes there and JSON back."""
        answer: Dict[str, Any] = json.loads(self.call(method, path, body))
        return answer

    def close(self) -> None:
        """End the connection; the next call opens another."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _as_os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) else ConnectionError(f"broken answer: {error!r}")
