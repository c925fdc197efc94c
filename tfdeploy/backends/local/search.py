"""The clusters of this machine, found by their folders, their processes and their sockets."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from ..base import Cluster, Found
from ..folders import runtime_root, state_folder
from .places import Places
from .supervisor import MARK

_CLUSTERS = "clusters"
_PID = "supervisord.pid"
_NOBODY = "?"
"""The project of sockets that no folder and no process tells the cluster of."""


def found(place: str = "") -> list[Found]:
    """All that is there, whatever state folder it belongs to."""
    processes = _processes()
    folders = (state_folder() / _CLUSTERS).glob("*.*.*")
    homes = {str(path) for path in folders} | set(processes)
    known = [_found(home, processes.get(home, [])) for home in sorted(homes)]
    return [*known, *_sockets({Places(home).runtime for home in homes})]


def cluster_of(home: str) -> Cluster:
    """The cluster of a folder: the name of a cluster has no dot, that of a stack rarely has one."""
    first, name = Path(home).name.rpartition(".")[::2]
    project, stack = first.rpartition(".")[::2]
    return {"backend": "local", "project": project, "stack": stack, "name": name, "home": home}


def _found(home: str, began: list[float]) -> Found:
    places = Places(home)
    has = {"process": len(began), "folder": int(places.home.exists()), "socket folder": int(places.runtime.exists())}
    times = [*began, *_made(places.token if places.token.exists() else places.home)]
    return Found(cluster_of(home), {kind: count for kind, count in has.items() if count}, min(times, default=0.0))


def _processes() -> dict[str, list[float]]:
    """Home of a cluster to when each process that carries its mark began."""
    marked: dict[str, list[float]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            home = process.environ().get(MARK)
            # A dead one that nobody has waited for holds nothing.
            if home and Path(home).parent.name == _CLUSTERS and process.status() != psutil.STATUS_ZOMBIE:
                marked.setdefault(home, []).append(process.create_time())
    return marked


def _sockets(known: set[Path]) -> Iterator[Found]:
    """Folders of sockets that belong to no cluster which is known: what made them is gone, with its own folder."""
    for path in runtime_root().glob("*/") if runtime_root().exists() else ():
        if path not in known and (path / _PID).exists():
            cluster: Cluster = {"backend": "local", "project": _NOBODY, "stack": _NOBODY, "name": path.name, "home": ""}
            yield Found(cluster, {"socket folder": 1}, min(_made(path), default=0.0))


def _made(path: Path) -> list[float]:
    with suppress(OSError):
        return [path.stat().st_mtime]
    return []
