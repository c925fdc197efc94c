"""Calls of a controller over standard input and output: one TCP connection, after a line with the token.

The backend runs the text of this file in the controller's container, whose agent may be of an earlier version. So it imports nothing
of the agent.
"""

import os
import select
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, List

TOKEN_MARK = b"tfdeploy-token: "
"""The start of the line with the token."""

_NO_RESPONSE = 3
_SECONDS, _QUIET_SECONDS = 30.0, 1.0
_CHUNK = 1 << 16


def relay_calls(host: str, port: str, token_file: str) -> int:
    """Connect, print the token, and copy bytes both ways until a side closes; the exit code."""
    try:
        token = Path(token_file).read_bytes().strip()
        peer = socket.create_connection((host, int(port)), _SECONDS)
    except OSError as error:
        print(f"{error.filename or f'{host}:{port}'}: {error.strerror or error}", file=sys.stderr)
        return _NO_RESPONSE
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(BrokenPipeError):  # the reader has closed its end
        _write(TOKEN_MARK + token + b"\n")
        _copy(peer)
    return 0


def _copy(peer: socket.socket) -> None:
    """Copy bytes. Input for a controller that has closed is discarded until it pauses: an engine that has input for a command that has
    ended does not pass on its last output."""
    sources: List[Any] = [0, peer]
    while True:
        readable = select.select(sources, [], [], None if peer in sources else _QUIET_SECONDS)[0]
        if not readable:
            return
        if peer in readable and not _receive(peer):
            sources.remove(peer)
        if 0 in readable:
            data = os.read(0, _CHUNK)
            if not data:
                return
            with suppress(OSError):
                peer.sendall(data)


def _receive(peer: socket.socket) -> bool:
    """Copy what the peer has sent; False at its end."""
    data = b""
    with suppress(OSError):
        data = peer.recv(_CHUNK)
    _write(data)
    return bool(data)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(relay_calls(*sys.argv[1:]))
