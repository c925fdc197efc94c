"""A task's address on this computer: each connection to a port of the loopback interface is relayed to the task.

Every user of this computer can connect to such a port, and TensorFlow's servers have no access control. So a connection is relayed
only if its process belongs to this user or to root. The kernel's table of connections has the owner of each; a system without that
table (https://docs.kernel.org/networking/proc_net_tcp.html) gets no check.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import BackendError
from .connection import Connect, Connection

LOOPBACK = "127.0.0.1"
_CHUNK_BYTES = 1 << 16
_BACKLOG = 128
_CONNECTION_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_KERNEL_LOOPBACK = f"{int.from_bytes(socket.inet_aton(LOOPBACK), sys.byteorder):08X}"
_ROOT = 0


class Forward:
    """A port of this computer that is relayed to a task until `close`; only programs of this user on this computer reach it."""

    def __init__(self, connect: Connect, port: int, report_problem: Callable[[str], None]) -> None:
        """Listen on a port, 0 for any that is free; `report_problem` is called with the reason when a connection fails.

        Raises:
            BackendError: the port is taken.
        """
        self._connect = connect
        self._report_problem = report_problem
        try:
            self._listener = socket.create_server((LOOPBACK, port), backlog=_BACKLOG)
        except OSError as error:
            wrong = f"port {port} of this computer is not available ({os.strerror(error.errno or 0)})"
            raise BackendError(f"{wrong}. Choose another, or leave out --port.") from None
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening; open connections continue."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client:
            if not _is_own(client):
                self._report_problem("refused a connection from a program of another user of this computer")
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                task = self._connect()
            except (BackendError, OSError) as error:
                self._report_problem(str(error))
                return
            try:
                relay(client, task)
                if task.why():
                    self._report_problem(task.why())
            finally:
                task.close()


def _is_own(client: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user or to root."""
    if not _CONNECTION_TABLES[0].exists():
        return True
    ends = [port for _, port in (client.getpeername(), client.getsockname())]
    return _owner(ends) in (os.getuid(), _ROOT)


def _owner(ports: Sequence[int]) -> int | None:
    """The user id of the process with the socket of these local and remote ports on loopback; None if there is none."""
    for table in _CONNECTION_TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                is_loopback = fields[1].partition(":")[0].endswith(_KERNEL_LOOPBACK)  # also as an IPv6 address
                if is_loopback and [int(end.rpartition(":")[2], 16) for end in fields[1:3]] == list(ports):
                    return int(fields[7])
    return None


def relay(client: socket.socket, task: Connection) -> None:
    """Relay bytes both ways until both sides have closed their direction, or one connection is lost."""
    sender = threading.Thread(target=_send_all, args=(client, task), daemon=True)
    sender.start()
    with suppress(OSError):
        while data := task.receive():
            client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        sender.join()


def _send_all(client: socket.socket, task: Connection) -> None:
    with suppress(OSError):
        while data := client.recv(_CHUNK_BYTES):
            task.send(data)
    with suppress(OSError):
        task.end()
