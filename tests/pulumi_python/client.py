"""`client.py SOCKET PYTHON ARGUMENT...`: runs the arguments in a fork of the server, or in PYTHON where the server refuses.

Each start pays for what this module imports, so it imports what `socket` and `signal` are made from.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys


def main() -> None:
    """Become PYTHON, or pass signals to the fork and end as it ends."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    child = _start(connection)
    if not child:
        connection.close()
        os.execv(sys.argv[2], sys.argv[2:])
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(number, lambda received, _: _pass_on(child, received))
    code = int.from_bytes(connection.recv(4), sys.byteorder, signed=True)
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL) if -code != _signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


def _start(connection: _socket.socket) -> int:
    """The process id of the fork; 0 if the server refuses or is gone."""
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    try:
        connection.connect(sys.argv[1])
        connection.sendmsg([b"streams"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        return int.from_bytes(connection.recv(4), sys.byteorder)
    except OSError:
        return 0


def _pass_on(child: int, number: int) -> None:
    try:  # noqa: SIM105, contextlib takes long to load
        os.kill(child, number)
    except ProcessLookupError:
        pass


main()
