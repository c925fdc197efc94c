"""What the machine's Docker engine knows of the cluster: tasks, other machines, where the record is.

https://docs.docker.com/reference/api/engine/version/v1.41/, over the engine's own socket.
"""

import json
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, List, Mapping, NamedTuple, Optional, Set
from urllib.parse import quote

SOCKET = "/var/run/docker.sock"
_VERSION = "/v1.41"
_SECONDS = 10.0
_IDLE = ("-keeper", "-tensorboard-0")
"""What the names of services end with that run for no job: of the one that keeps it, and of the one that looks on."""

_RECORD = "-record"
_SERVICE = "com.docker.swarm.service.name"


class Silent(OSError):
    """The engine answers with an error."""


class Seen(NamedTuple):
    """What the engine says now."""

    tasks: int
    """How many tasks of the cluster run on this machine."""
    elsewhere: int
    """How many run on others; 0 where the Swarm is not managed."""
    manages: bool
    others: int
    """How many other machines are up."""
    last: float = 0.0
    """When the last task came to this machine, in seconds since 1970, be it over or not; 0 for never."""


class Engine:
    """The engine of this machine; `cluster` has `project`, `stack` and `cluster`."""

    def __init__(self, cluster: Mapping[str, str], where: str = SOCKET) -> None:
        self._where = where
        self._labels = [f"tfdeploy.{name}={cluster[name]}" for name in ("project", "stack", "cluster")]

    def look(self) -> Seen:
        """What it says now.

        Raises:
            OSError: it does not answer, or not as it should.
        """
        ours = self._get("/containers/json", {"label": self._labels}, "all=1&")
        came = [one for one in ours if not one["Labels"].get(_SERVICE, "").endswith(_IDLE)]
        last = max((float(one["Created"]) for one in came), default=0.0)
        tasks = [one for one in came if one["State"] == "running"]
        swarm = self._get("/info")["Swarm"]
        if not swarm["ControlAvailable"]:
            return Seen(len(tasks), 0, False, 0, last)
        nodes = self._get("/nodes")
        up = {node["ID"] for node in nodes if node["Status"]["State"] == "ready"} - {swarm["NodeID"]}
        return Seen(len(tasks), self._elsewhere(up), True, len(up), last)

    def _elsewhere(self, up: Set[str]) -> int:
        """How many tasks run on these nodes. Of a node that is down the Swarm says for long what it said last."""
        services = self._get("/services", {"label": self._labels})
        names = [one["Spec"]["Name"] for one in services if not one["Spec"]["Name"].endswith(_IDLE)]
        tasks = self._get("/tasks", {"service": names, "desired-state": ["running"]}) if names else []
        return sum(task["Status"]["State"] == "running" and task.get("NodeID") in up for task in tasks)

    def record(self) -> Optional[Path]:
        """The folder of the keeper's record on this machine; None before there is one."""
        volumes: List[Any] = self._get("/volumes", {"label": self._labels})["Volumes"] or []
        folders = (Path(one["Mountpoint"]) for one in volumes if one["Name"].endswith(_RECORD))
        return next((folder for folder in folders if (folder / "life").exists()), None)

    def _get(self, path: str, filters: Optional[Mapping[str, List[str]]] = None, more: str = "") -> Any:
        connection = _Local(self._where)
        try:
            connection.request("GET", f"{_VERSION}{path}?{more}filters={quote(json.dumps(filters or {}))}")
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise Silent(f"{path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text)


class _Local(HTTPConnection):
    def __init__(self, where: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._where = where

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._where)
