"""Removes a cluster's volumes from the machine that it runs on, through the engine there: no manager can do that for its nodes."""

import json
import sys
from typing import Any, List
from urllib.parse import quote

from .protocol import UNIX, Connection

_SOCKET = "/var/run/docker.sock"
_SECONDS = 30.0


def forget(labels: List[str], path: str = _SOCKET) -> int:
    """Remove every volume that carries all these labels (`name=value`); the exit code, 1 when one is still in use."""
    listed = _call(path, "GET", f"/volumes?filters={quote(json.dumps({'label': labels}))}")
    left = [item["Name"] for item in json.loads(listed.read())["Volumes"] or []]
    refused = [name for name in left if _call(path, "DELETE", f"/volumes/{quote(name)}").status not in (204, 404)]
    for name in refused:
        print(f"the volume {name} is in use", file=sys.stderr)
    return 1 if refused else 0


def _call(path: str, method: str, what: str) -> Any:
    connection = Connection(f"{UNIX}{path}", _SECONDS)
    connection.request(method, what)
    return connection.getresponse()
