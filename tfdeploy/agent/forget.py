"""Removes a cluster's volumes from the machine that it runs on, through the engine there: no manager can do that for its nodes."""

import http.client
import json
import socket
import sys
from typing import Any, List
from urllib.parse import quote

_SOCKET = "/var/run/docker.sock"
_SECONDS = 30.0


class _Engine(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def forget(labels: List[str], path: str = _SOCKET) -> int:
    """Remove every volume that carries all these labels (`name=value`); the exit code, 1 when one is still in use."""
    listed = _call(path, "GET", f"/volumes?filters={quote(json.dumps({'label': labels}))}")
    left = [item["Name"] for item in json.loads(listed.read())["Volumes"] or []]
    refused = [name for name in left if _call(path, "DELETE", f"/volumes/{quote(name)}").status not in (204, 404)]
    for name in refused:
        print(f"the volume {name} is in use", file=sys.stderr)
    return 1 if refused else 0


def _call(path: str, method: str, what: str) -> Any:
    connection = _Engine(path)
    connection.request(method, what, headers={"Host": "engine"})
    return connection.getresponse()
