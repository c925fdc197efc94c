"""Removes a cluster's volumes from the machine that it runs on, through the engine there: no manager can do that for its nodes."""

import json
import sys
import time
from typing import Any, Dict, List
from urllib.parse import quote

from .protocol import UNIX, Connection

_SOCKET = "/var/run/docker.sock"
_SECONDS = 30.0
_PATIENCE, _PAUSE = 60.0, 0.5
SERVICE = "com.docker.swarm.service.name"
"""The label by which the engine says of a container whose it is."""

ONLY = "--"
"""Between labels and what of theirs is meant: the name of a service, then those of volumes."""


def forget(arguments: List[str], path: str = _SOCKET) -> int:
    """Remove every volume that carries all these labels (`name=value`); the exit code, 1 when one is still in use.

    `-- SERVICE VOLUME…` after them: only these volumes, and before them the containers of that service which have ended.
    """
    labels, only = _parted(arguments)
    listed = _get(path, "/volumes?", {"label": labels})["Volumes"] or []
    left = [item["Name"] for item in listed if not only or item["Name"] in only[1:]]
    deadline = time.monotonic() + (_PATIENCE if only else 0)
    while True:
        if only:
            _bury(path, [*labels, f"{SERVICE}={only[0]}"])
        left = [name for name in left if _call(path, "DELETE", f"/volumes/{quote(name)}").status not in (204, 404)]
        if not left or time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE)
    for name in left:
        print(f"the volume {name} is in use", file=sys.stderr)
    return 1 if left else 0


def _parted(arguments: List[str]) -> Any:
    place = arguments.index(ONLY) if ONLY in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def _bury(path: str, labels: List[str]) -> None:
    """Remove containers that have ended: the engine keeps some, and with them what they mount."""
    for item in _get(path, "/containers/json?all=1&", {"label": labels, "status": ["exited", "dead", "created"]}):
        _call(path, "DELETE", f"/containers/{item['Id']}")


def _get(path: str, what: str, filters: Dict[str, List[str]]) -> Any:
    return json.loads(_call(path, "GET", f"{what}filters={quote(json.dumps(filters))}").read())


def _call(path: str, method: str, what: str) -> Any:
    connection = Connection(f"{UNIX}{path}", _SECONDS)
    connection.request(method, what)
    return connection.getresponse()
