"""What this machine has without a cluster: the clusters that it has folders, processes or sockets of, and what clusters need."""

import ipaddress
import socket
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from ...errors import SpecError
from ...paths import read_json, state_folder
from ...spec.backends import install_advice
from ..base import FAIL, OK, WARN, Check, ClusterRef, DiscoveredCluster
from .paths import CLUSTERS, Places
from .supervisor import MARK

_UNKNOWN = "?"
"""The project and the stack of a cluster whose folder does not name them."""

_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tf-nightly")
_SHOWN = 3
"""How many addresses are printed."""

_PORTS = "20000 to 31999"


def discover_clusters(place: str = "") -> list[DiscoveredCluster]:
    """All clusters of this machine, also those of other state folders."""
    processes = _processes()
    folders = (state_folder() / CLUSTERS).glob("*-*")
    homes = {str(path) for path in folders} | set(processes)
    return [_discovered_cluster(home, processes.get(home, [])) for home in sorted(homes)]


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
    counts = {"process": len(start_times), "folder": int(places.home.exists())}
    times = [*start_times, *_modified_at(places.token if places.token.exists() else places.home)]
    return DiscoveredCluster(
        cluster_of(home), {kind: count for kind, count in counts.items() if count}, min(times, default=0.0)
    )


def _processes() -> dict[str, list[float]]:
    """Home of each cluster to the start times of the processes that have its mark."""
    start_times: dict[str, list[float]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            home = process.environ().get(MARK)
            # A zombie process holds no resources.
            if home and Path(home).parent.name == CLUSTERS and process.status() != psutil.STATUS_ZOMBIE:
                start_times.setdefault(home, []).append(process.create_time())
    return start_times


def _modified_at(path: Path) -> list[float]:
    with suppress(OSError):
        return [path.stat().st_mtime]
    return []


def health(place: str = "") -> list[Check]:
    """TensorFlow, TensorBoard, and from where the tasks can be reached."""
    addresses = [
        address.address
        for addresses_of_interface in psutil.net_if_addrs().values()
        for address in addresses_of_interface
        if address.family == socket.AF_INET
    ]
    return [_tensorflow(), _tensorboard(), network_check(addresses)]


def network_check(addresses: list[str]) -> Check:
    """How exposed the tasks are: TensorFlow's servers have no access control, and listen on every address. Pure."""
    external = [address for address in addresses if not ipaddress.ip_address(address).is_loopback]
    public = [address for address in external if ipaddress.ip_address(address).is_global]
    if not external:
        return Check("network", OK, "this machine has only loopback addresses")
    more = f" and {len(external) - _SHOWN} more" if len(external) > _SHOWN else ""
    shown = ", ".join([*public, *(address for address in external if address not in public)][:_SHOWN])
    exposure = f"TensorFlow's servers have no access control and listen on {shown}{more}"
    where = "" if public else "On a network that you do not trust, put"
    return Check("network", WARN, exposure, f"{where or 'Put'} a firewall before the ports {_PORTS}.")


def _tensorflow() -> Check:
    if find_spec("tensorflow") is None:
        return Check("tensorflow", FAIL, "is not installed", install_advice("local"))
    return Check("tensorflow", OK, _version(*_TENSORFLOW))


def _tensorboard() -> Check:
    if find_spec("tensorboard") is None:
        return Check("tensorboard", WARN, "is not installed", "pip install tensorboard")
    return Check("tensorboard", OK, _version("tensorboard", "tb-nightly"))


def _version(*names: str) -> str:
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return "installed, version unknown"
