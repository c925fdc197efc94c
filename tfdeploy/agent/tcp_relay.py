"""One TCP connection over standard input and output: with it, `exec` reaches a task in a network that is closed from outside.

This file imports nothing of the agent: the backend runs its text in containers whose agent is of an earlier version, too.
"""

import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

TOKEN_MARK = b"tfdeploy-token: "
"""The start of the line with the token."""

_NO_RESPONSE = 3
_SECONDS = 30.0
_CHUNK = 1 << 16


def relay(host: str, port: str, token_file: str = "") -> int:
    """Connect, and copy bytes both ways until both sides have closed; the exit code.

    With a token file, the peer is a controller: the token is the first line of the output, and the end of the peer is the end.
    """
    try:
        token = Path(token_file).read_bytes().strip() if token_file else b""
        peer = socket.create_connection((host, int(port)), _SECONDS)
    except OSError as error:
        print(f"{error.filename or f'{host}:{port}'}: {error.strerror or error}", file=sys.stderr)
        return _NO_RESPONSE
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if token_file:
        os.write(1, TOKEN_MARK + token + b"\n")
    to_peer = threading.Thread(target=_send, args=(peer,), daemon=True)
    to_peer.start()
    try:
        _receive(peer)
    except BrokenPipeError:
        return 0  # the reader has closed its end
    if not token_file:
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


if __name__ == "__main__":
    sys.exit(relay(*sys.argv[1:]))
