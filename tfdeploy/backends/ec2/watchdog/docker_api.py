"""What the machine's Docker engine reports about the cluster: tasks, other machines, the folder of the record.

https://docs.docker.com/reference/api/engine/, over the engine's own socket, without a version: engines refuse old ones.
"""

import json
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Container, List, Mapping, NamedTuple, Optional
from urllib.parse import quote

SOCKET = "/var/run/docker.sock"
_TIMEOUT_SECONDS = 10.0
_AUXILIARY = ("-controller", "-tensorboard-0")
"""The ends of the names of services that are not training tasks."""

_CLUSTER_LABEL = "tfdeploy.cluster"
_RECORD_VOLUME = "-record"
_SERVICE = "com.docker.swarm.service.name"


class EngineError(OSError):
    """The engine responds with an error."""


class EngineState(NamedTuple):
    """What the engine reports."""

    tasks: int
    """The number of the cluster's tasks that run on this machine."""
    elsewhere: int
    """The number that runs on other machines, or may run; 0 where this machine is not the manager."""
    is_manager: bool
    others: int
    """The number of other machines that are up."""
    last: float = 0.0
    """When the last task was created on this machine, running or not, in seconds since 1970; 0 for never."""


class LocalEngine:
    """The engine of this machine, which belongs to one cluster: what has the label of a cluster is its own."""

    def __init__(self, path: str = SOCKET) -> None:
        self._path = path
        self._labels = [_CLUSTER_LABEL]

    def observe(self, is_over: bool) -> EngineState:
        """The present state. Until the run is over, tasks on nodes that do not respond count, as the Swarm last saw them, for 24
        hours: this machine may be the one that is cut off.

        Raises:
            OSError: it does not respond, or with an error.
        """
        containers = self._get("/containers/json", {"label": self._labels}, "all=1&")
        tasks = [item for item in containers if not item["Labels"].get(_SERVICE, "").endswith(_AUXILIARY)]
        last = max((float(item["Created"]) for item in tasks), default=0.0)
        running = sum(item["State"] == "running" for item in tasks)
        swarm = self._get("/info")["Swarm"]
        if not swarm["ControlAvailable"]:
            return EngineState(running, 0, False, 0, last)
        nodes = {node["ID"]: node["Status"]["State"] for node in self._get("/nodes") if node["ID"] != swarm["NodeID"]}
        ready = [node for node in nodes if nodes[node] == "ready"]
        return EngineState(running, self._tasks_on(ready if is_over else nodes), True, len(ready), last)

    def _tasks_on(self, nodes: Container[str]) -> int:
        """The number of tasks that run on these nodes, as the Swarm reports it."""
        services = self._get("/services", {"label": self._labels})
        names = [item["Spec"]["Name"] for item in services if not item["Spec"]["Name"].endswith(_AUXILIARY)]
        tasks = self._get("/tasks", {"service": names}) if names else []
        return sum(task["Status"]["State"] == "running" and task.get("NodeID") in nodes for task in tasks)

    def record(self) -> Optional[Path]:
        """The folder of the controller's record on this machine; None before it has a run: that of a new controller, which gets the
        record from the bucket, must not replace it there."""
        volumes: List[Any] = self._get("/volumes", {"label": self._labels})["Volumes"] or []
        folders = (Path(item["Mountpoint"]) for item in volumes if item["Name"].endswith(_RECORD_VOLUME))
        return next((folder for folder in folders if (folder / "current").exists()), None)

    def _get(self, path: str, filters: Optional[Mapping[str, List[str]]] = None, query: str = "") -> Any:
        connection = _UnixConnection(self._path)
        try:
            connection.request("GET", f"{path}?{query}filters={quote(json.dumps(filters or {}))}")
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise EngineError(f"{path}: {response.status} {body.decode(errors='replace')}")
        return json.loads(body)


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_SECONDS)
        self.sock.connect(self._path)
