"""The program of the tasks of `tfdeploy run --here`: worker 0 runs its command in the terminal, the other tasks run it themselves.

A separate program with the standard library only: `python terminal_relay.py SOCKET COMMAND…`.
"""

import json
import os
import signal
import socket
import sys

HERE = "worker-0"


def main(address: str, *command: str) -> int:
    """Become the command; in worker 0, request it from the terminal and wait for its exit code."""
    if os.environ["TFDEPLOY_HOSTNAME"] != HERE:
        os.execvp(command[0], list(command))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: connection.sendall(f"{number}\n".encode()))
        connection.sendall((json.dumps({"command": command, "env": dict(os.environ)}) + "\n").encode())
        response = connection.makefile().readline()
    code = int(response) if response else 1
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
