"""Removes a cluster's volumes from one node, through its Docker socket: a Swarm manager cannot do that for other nodes."""

import json
import sys
from typing import Any, Dict, List, Tuple
from urllib.parse import quote

from .system.polling import wait_until
from .wire.rpc import UNIX, HttpConnection

_SOCKET = "/var/run/docker.sock"
_CALL_SECONDS = 30.0
_IN_USE_SECONDS, _PAUSE = 60.0, 0.5
SERVICE = "com.docker.swarm.service.name"
"""Docker's label with the name of a container's service."""

ONLY = "--"
"""Separates the labels from the selection: the name of a service, then the names of volumes."""


def remove_volumes(arguments: List[str], path: str = _SOCKET) -> int:
    """Remove all volumes with all these labels (`name=value`), the first of which is the cluster's, after its ended containers; the
    exit code, 1 when one is still in use.

    With `-- SERVICE VOLUME…` only these volumes are removed, after the ended containers of the service.
    """
    labels, selection = _parse(arguments)
    users = [f"{SERVICE}={selection[0]}"] if selection else labels[:1]
    volumes = _get(path, "/volumes?", {"label": labels})["Volumes"] or []
    left = [volume["Name"] for volume in volumes if not selection or volume["Name"] in selection[1:]]

    def are_removed() -> bool:
        _remove_ended_containers(path, users)
        left[:] = [name for name in left if _call(path, "DELETE", f"/volumes/{quote(name)}").status not in (204, 404)]
        return not left

    wait_until(are_removed, _IN_USE_SECONDS, _PAUSE)
    for name in left:
        print(f"the volume {name} is in use", file=sys.stderr)
    return 1 if left else 0


def _parse(arguments: List[str]) -> Tuple[List[str], List[str]]:
    """The labels, and the selection."""
    index = arguments.index(ONLY) if ONLY in arguments else len(arguments)
    return arguments[:index], arguments[index + 1 :]


def _remove_ended_containers(path: str, labels: List[str]) -> None:
    """A Swarm keeps some ended containers, and with them the use of their volumes; Docker before 23 those of all jobs."""
    for item in _get(path, "/containers/json?all=1&", {"label": labels, "status": ["exited", "dead", "created"]}):
        _call(path, "DELETE", f"/containers/{item['Id']}")


def _get(path: str, target: str, filters: Dict[str, List[str]]) -> Any:
    return json.loads(_call(path, "GET", f"{target}filters={quote(json.dumps(filters))}").read())


def _call(path: str, method: str, target: str) -> Any:
    connection = HttpConnection(f"{UNIX}{path}", _CALL_SECONDS)
    connection.request(method, target)
    return connection.getresponse()
