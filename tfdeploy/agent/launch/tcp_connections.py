"""The TCP connections of processes, with the bytes of each: from the kernel's `sock_diag`, else, without bytes, from `/proc/net`.

https://man7.org/linux/man-pages/man7/sock_diag.7.html, and `struct tcp_info` of linux/tcp.h.
"""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Dict, FrozenSet, Iterable, Iterator, NamedTuple, Tuple

_PROC = Path("/proc")
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST_DUMP = 0x301
_DONE, _ERROR = 3, 2
_INET_DIAG_INFO = 2
ESTABLISHED, CONNECTING = 1, 2
_STATES = 1 << ESTABLISHED | 1 << CONNECTING
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_PORTS = struct.Struct(">HH")
_MESSAGE_LENGTH, _INODE_AT = 72, 68
_BYTES_AT = 120
"""Where `bytes_acked` and `bytes_received` are in `tcp_info`, since Linux 4.1."""

_SECONDS = 2.0


class Socket(NamedTuple):
    """One end of a TCP connection of this network namespace."""

    local: str
    peer: str
    is_open: bool
    sent: int = 0
    received: int = 0


def sockets_of(pids: Iterable[int]) -> FrozenSet[str]:
    """The inodes of the sockets that processes have open."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for path in (_PROC / str(pid) / "fd").iterdir():
                with suppress(OSError):
                    target = os.readlink(str(path))
                    if target.startswith("socket:["):
                        inodes.add(target[len("socket:[") : -1])
    return frozenset(inodes)


def counted_sockets() -> Dict[str, Socket]:
    """Inode to socket, with the bytes so far.

    Raises:
        OSError: the kernel does not report them, or the container may not ask.
    """
    sockets = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as channel:
        channel.settimeout(_SECONDS)
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _STATES)
            head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
            channel.sendto(head + body, (0, 0))
            for message in _messages(channel):
                inode, item = _parse(message)
                sockets[inode] = item
    return sockets


def _messages(channel: socket.socket) -> Iterator[bytes]:
    while True:
        data = channel.recv(1 << 17)
        while data:
            length, kind = _HEADER.unpack_from(data)[:2]
            if kind == _DONE:
                return
            if kind == _ERROR:
                code = -struct.unpack_from("=i", data, _HEADER.size)[0]
                raise OSError(code, os.strerror(code))
            yield data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def _parse(message: bytes) -> Tuple[str, Socket]:
    family, state = message[0], message[1]
    size = 4 if family == socket.AF_INET else 16
    ports = _PORTS.unpack_from(message, 4)
    local, peer = _address(message[8 : 8 + size], ports[0]), _address(message[24 : 24 + size], ports[1])
    sent = received = 0
    rest = message[_MESSAGE_LENGTH:]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if kind == _INET_DIAG_INFO and length >= _ATTRIBUTE.size + _BYTES_AT + 16:
            sent, received = struct.unpack_from("=QQ", rest, _ATTRIBUTE.size + _BYTES_AT)
        rest = rest[max((length + 3) & ~3, _ATTRIBUTE.size) :]
    inode = struct.unpack_from("=I", message, _INODE_AT)[0]
    return str(inode), Socket(local, peer, state == ESTABLISHED, sent, received)


def listed_sockets(pid: int) -> Dict[str, Socket]:
    """Inode to socket, without bytes.

    Raises:
        OSError: the process has ended.
    """
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in (_PROC / str(pid) / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            state = int(fields[3], 16)
            if state in (ESTABLISHED, CONNECTING):
                sockets[fields[9]] = Socket(_listed(fields[1]), _listed(fields[2]), state == ESTABLISHED)
    return sockets


def _listed(text: str) -> str:
    """An address of `/proc/net/tcp`: words of 32 bits in the order of this machine."""
    digits, _, port = text.partition(":")
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    return _address(struct.pack(f"={len(words)}I", *words), int(port, 16))


def _address(packed: bytes, port: int) -> str:
    if packed[:12] == b"\0" * 10 + b"\xff\xff":
        packed = packed[12:]
    text = socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
    return f"{text}:{port}" if len(packed) == 4 else f"[{text}]:{port}"
