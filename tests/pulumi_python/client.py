"""`client.py SOCKET PYTHON ARGUMENT...`: runs the arguments in a fork of the server, or in PYTHON where the server refuses.

Each start pays for what this module imports, so it imports what `socket` and `signal` are made from.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

SIGNALS = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)


def main() -> None:
    """Become PYTHON, or send signals to the fork and end as it ends."""
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, SIGNALS)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    if not _is_forked(connection):
        connection.close()
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        os.execv(sys.argv[2], sys.argv[2:])
    connection.setblocking(False)
    _signal.set_wakeup_fd(connection.fileno())  # Python writes the number of each signal to it
    for number in SIGNALS:
        _signal.signal(number, lambda *_: None)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    select.select([connection], [], [])
    code = int.from_bytes(connection.recv(4), sys.byteorder, signed=True)
    if code >= 0:
        os._exit(code)
    _signal.set_wakeup_fd(-1)
    if -code != _signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)


def _is_forked(connection: _socket.socket) -> bool:
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    try:
        connection.connect(sys.argv[1])
        connection.sendmsg([b"streams"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        return connection.recv(4) != bytes(4)
    except OSError:
        return False


main()
