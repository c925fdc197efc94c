"""One TCP connection over standard input and output: with it, `exec` reaches a task in a network that is closed from outside."""

import os
import socket
import sys
import threading
from contextlib import suppress

from .rpc import NO_RESPONSE

_SECONDS = 30.0
_CHUNK = 1 << 16


def relay(host: str, port: str) -> int:
    """Connect, and copy bytes both ways until both sides have closed; the exit code."""
    try:
        peer = socket.create_connection((host, int(port)), _SECONDS)
    except OSError as error:
        print(f"{host}:{port}: {error.strerror or error}", file=sys.stderr)
        return NO_RESPONSE
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    to_peer = threading.Thread(target=_send, args=(peer,), daemon=True)
    to_peer.start()
    try:
        _receive(peer)
    except BrokenPipeError:
        return 0  # the reader has closed its end
    to_peer.join()
    return 0


def _send(peer: socket.socket) -> None:
    with suppress(OSError):
        while True:
            data = os.read(0, _CHUNK)
            if not data:
                break
            peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)


def _receive(peer: socket.socket) -> None:
    while True:
        try:
            data = peer.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            os.close(1)
            return
        while data:
            data = data[os.write(1, data) :]
