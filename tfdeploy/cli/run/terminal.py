"""Worker 0 in this terminal, for `tfdeploy run --here`: a relay takes its place in the cluster, and its program runs here."""

import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ...agent.system.parent_death import NOT_FOUND
from ...paths import make_private, runtime_root
from ..output import print_message
from . import terminal_relay


class Terminal:
    """Runs the programs that relays request, one at a time, with the input and output of this terminal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_private(runtime_root())
        self._path = runtime_root() / f"here-{uuid.uuid4().hex[:12]}.sock"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._path))
        self._server.listen()
        threading.Thread(target=self._accept_connections, daemon=True).start()

    def command(self, command: Sequence[str]) -> list[str]:
        """The command of the tasks: the relay, which runs `command` itself in all tasks but worker 0."""
        return [sys.executable, "-I", "-S", terminal_relay.__file__, str(self._path), *command]

    def close(self) -> None:
        """Stop listening."""
        self._path.unlink(missing_ok=True)
        self._server.close()

    def _accept_connections(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self._serve_connection(connection)

    def _serve_connection(self, connection: socket.socket) -> None:
        messages = connection.makefile()
        try:
            request = json.loads(messages.readline())
        except (OSError, ValueError):  # the relay has exited before it sent its request
            return
        command = request["command"]
        try:
            process = subprocess.Popen(command, env={**os.environ, **request["env"]}, cwd=self._folder)
        except OSError as error:
            print_message(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}")
            code = NOT_FOUND
        else:
            threading.Thread(target=_forward_signals, args=(messages, process), daemon=True).start()
            code = process.wait()
        with suppress(OSError):
            connection.sendall(f"{code}\n".encode())


def _forward_signals(messages: Iterable[str], process: "subprocess.Popen[bytes]") -> None:
    """Send the signals of the launcher to the program. When the relay exits, kill the program."""
    with suppress(OSError, ValueError):
        for message in messages:
            process.send_signal(int(message))
    process.kill()
