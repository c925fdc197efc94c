"""How many bytes tasks send to each other, from the dumps of their programs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..agent.task_dump import PeerConnection, TaskDump


@dataclass(frozen=True)
class Traffic:
    """What one task exchanges with one peer, in bytes a second."""

    hostname: str
    peer: str
    """A hostname; the address of what is not a task."""
    sent: float
    received: float


def peer_names(dumps: Iterable[TaskDump]) -> Mapping[tuple[str, str], str]:
    """Task and address to the task at the other end: both of them have the client's address. The server's may be another one, as
    engines translate it, but has the same port."""
    dumps = list(dumps)
    ends: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for dump in dumps:
        for item in dump.connections:
            ends.setdefault((item.local, _port(item.peer)), []).append((dump.hostname, item.peer))
    names: dict[tuple[str, str], str] = {}
    for dump in dumps:
        for item in dump.connections:
            clients = ends.get((item.peer, _port(item.local)), [])
            if len(clients) == 1:
                client, address = clients[0]
                names[dump.hostname, item.peer] = client
                names[client, address] = dump.hostname
    return names


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def traffic(dumps: Sequence[TaskDump]) -> list[Traffic]:
    """What each task exchanges with each peer; connections without bytes are left out."""
    names = peer_names(dumps)
    sums: dict[tuple[str, str], tuple[float, float]] = {}
    for dump in dumps:
        for item in dump.connections:
            key = (dump.hostname, names.get((dump.hostname, item.peer), item.peer))
            sent, received = sums.get(key, (0.0, 0.0))
            sums[key] = (sent + _rate(dump, item.sent), received + _rate(dump, item.received))
    return [Traffic(*key, *values) for key, values in sums.items() if any(values)]


def total_rate(dump: TaskDump) -> float:
    """The bytes a second that a task sends and receives."""
    return _rate(dump, sum(item.sent + item.received for item in dump.connections))


def sent_rate(dump: TaskDump) -> float:
    """The bytes a second that a task sends."""
    return _rate(dump, sum(item.sent for item in dump.connections))


def waiting_connections(dump: TaskDump) -> list[PeerConnection]:
    """Those whose peer does not respond."""
    return [item for item in dump.connections if not item.is_open]


def _rate(dump: TaskDump, size: int) -> float:
    return size / dump.interval if dump.interval else 0.0
