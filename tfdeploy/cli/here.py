"""Worker 0 in this terminal: a relay stands for it in the cluster, and the program runs here, with this terminal's input and output."""

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

from ..agent.child import NOT_FOUND
from ..backends.folders import make_private, runtime_root
from . import relay
from .asking import tell


class Terminal:
    """Runs what the relay asks for, one program at a time, until it is closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_private(runtime_root())
        self._path = runtime_root() / f"here-{uuid.uuid4().hex[:12]}.sock"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def command(self, command: Sequence[str]) -> list[str]:
        """What the tasks are to run for this to be so."""
        return [sys.executable, "-I", "-S", relay.__file__, str(self._path), *command]

    def close(self) -> None:
        """Take no more."""
        self._path.unlink(missing_ok=True)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self._attend(connection)

    def _attend(self, connection: socket.socket) -> None:
        words = connection.makefile()
        try:
            asked = json.loads(words.readline())
        except (OSError, ValueError):  # the relay was gone before it had said what it wants
            return
        command = asked["command"]
        try:
            process = subprocess.Popen(command, env={**os.environ, **asked["env"]}, cwd=self._folder)
        except OSError as error:
            tell(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}")
            code = NOT_FOUND
        else:
            threading.Thread(target=_heed, args=(words, process), daemon=True).start()
            code = process.wait()
        with suppress(OSError):
            connection.sendall(f"{code}\n".encode())


def _heed(words: Iterable[str], process: "subprocess.Popen[bytes]") -> None:
    """Pass the launcher's signals on; when the relay is gone, the program goes too."""
    with suppress(OSError, ValueError):
        for word in words:
            process.send_signal(int(word))
    process.kill()
