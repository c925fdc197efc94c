"""The clusters of this machine, found by their folders, their processes and their sockets."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from ...errors import SpecError
from ...paths import read_json, runtime_root, state_folder
from ..base import ClusterRef, DiscoveredCluster
from .paths import CLUSTERS, Places
from .supervisor import MARK

_PID = "supervisord.pid"
_UNKNOWN = "?"
"""The project and the stack of a folder of sockets, where no folder and no process names its cluster."""


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters of this machine, also those of other state folders."""
    processes = _processes()
    folders = (state_folder() / CLUSTERS).glob("*-*")
    homes = {str(path) for path in folders} | set(processes)
    clusters = [_discovered_cluster(home, processes.get(home, [])) for home in sorted(homes)]
    return [*clusters, *_socket_folders({Places(home).runtime for home in homes})]


def cluster_of(home: str) -> ClusterRef:
    """The cluster of a folder, as far as it is known: a file in the folder has its reference, and the folder's name its id."""
    with suppress(OSError, SpecError):
        return read_json(
            Places(home).identity, lambda data: {key: str(data[key]) for key in ClusterRef.__annotations__}
        )  # type: ignore[return-value]
    name, _, cluster_id = Path(home).name.rpartition("-")
    return _cluster_ref(cluster_id, name, home)


def _cluster_ref(cluster_id: str, name: str, home: str) -> ClusterRef:
    return {
        "id": cluster_id,
        "owner": "",
        "backend": "local",
        "project": _UNKNOWN,
        "stack": _UNKNOWN,
        "name": name,
        "home": home,
    }


def _discovered_cluster(home: str, start_times: list[float]) -> DiscoveredCluster:
    places = Places(home)
    counts = {
        "process": len(start_times),
        "folder": int(places.home.exists()),
        "socket folder": int(places.runtime.exists()),
    }
    times = [*start_times, *_modified_at(places.token if places.token.exists() else places.home)]
    return DiscoveredCluster(
        cluster_of(home), {kind: count for kind, count in counts.items() if count}, min(times, default=0.0)
    )


def _processes() -> dict[str, list[float]]:
    """Home of each cluster to the start times of the processes that carry its mark."""
    start_times: dict[str, list[float]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            home = process.environ().get(MARK)
            # A zombie process holds no resources.
            if home and Path(home).parent.name == CLUSTERS and process.status() != psutil.STATUS_ZOMBIE:
                start_times.setdefault(home, []).append(process.create_time())
    return start_times


def _socket_folders(of_clusters: set[Path]) -> Iterator[DiscoveredCluster]:
    """Folders of sockets without a cluster: its processes and its folder no longer exist."""
    for path in runtime_root().glob("*/") if runtime_root().exists() else ():
        if path not in of_clusters and (path / _PID).exists():
            yield DiscoveredCluster(
                _cluster_ref("", path.name, ""), {"socket folder": 1}, min(_modified_at(path), default=0.0)
            )


def _modified_at(path: Path) -> list[float]:
    with suppress(OSError):
        return [path.stat().st_mtime]
    return []
