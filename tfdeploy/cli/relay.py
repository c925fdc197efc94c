"""What the tasks of `tfdeploy run --here` run: worker 0 hands its command over to the terminal and has its end; the others go on as
they are. A program of its own, standard library only: `python relay.py SOCKET COMMAND…`."""

import json
import os
import signal
import socket
import sys

HERE = "worker-0"


def main(address: str, *command: str) -> int:
    """Become the command, or stand for it while it runs in the terminal; its exit code."""
    if os.environ["TFDEPLOY_HOSTNAME"] != HERE:
        os.execvp(command[0], list(command))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: connection.sendall(f"{number}\n".encode()))
        connection.sendall((json.dumps({"command": command, "env": dict(os.environ)}) + "\n").encode())
        answer = connection.makefile().readline()
    code = int(answer) if answer else 1
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
