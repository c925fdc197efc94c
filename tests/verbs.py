"""The `tfdeploy` command as a process, and connections to what it makes reachable."""

import codecs
import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pulumi_python import forked_python
from tests.waiting import PATIENCE, until

COMMAND = str(Path(sys.executable).with_name("tfdeploy"))
IMPORTED = ("tfdeploy.cli.parser", "tfdeploy.cli.commands.status", "tfdeploy.backends.ec2.backend")
"""What most commands import, for a third of a second."""

ECHO = """
import os, socketserver

class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
        self.request.sendall(b"and that was all")

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

def serve(port=0, listens=lambda: None):
    server = Server(("", port or int(os.environ["TFDEPLOY_ADDRESS"].rpartition(":")[2])), Echo)
    listens()
    server.serve_forever()
"""
"""A task that sends back what it gets, and says so when its peer has ended."""


class Verbs:
    """The command, in the folder of a program."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.env = env

    def call(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Exit code, output, and what it said beside that, of a process that has imported most of it already."""
        command = [str(forked_python(*IMPORTED)), COMMAND, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, **self._where())
        return done.returncode, done.stdout, done.stderr.decode()

    def terminal(self, *arguments: str) -> "Terminal":
        """The same with somebody before it."""
        return Terminal([COMMAND, *arguments], self.folder, self.env)

    @contextmanager
    def locked(self, *arguments: str) -> Iterator[dict[str, Any]]:
        """One that goes on until it is ended; its answer."""
        process = subprocess.Popen([COMMAND, *arguments, "--json"], stdout=subprocess.PIPE, **self._where())
        assert process.stdout is not None
        try:
            text = ""
            while line := process.stdout.readline().decode():
                text += line
                if line == "}\n":
                    break
            yield json.loads(text)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()

    def _where(self) -> dict[str, Any]:
        return {"cwd": self.folder, "env": self.env}


class Terminal:
    """A command with somebody at a terminal before it."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (41, 97),
    ) -> None:
        self._near, far = pty.openpty()
        self.resize(*size)
        # Where these tests were started by `nohup`, the command would ignore that its terminal is closed.
        controlled = ["setsid", "--ctty", "env", "--default-signal=HUP", *command]
        self._process = subprocess.Popen(controlled, stdin=far, stdout=far, stderr=far, cwd=folder, env=env)
        os.close(far)
        self.pid = self._process.pid
        self.said = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def resize(self, rows: int, columns: int) -> None:
        """Make the window so large."""
        termios.tcsetwinsize(self._near, (rows, columns))

    def type(self, text: str) -> None:
        """Press keys; `\\x03` is Ctrl-C."""
        os.write(self._near, text.encode())

    def until_said(self, text: str) -> None:
        """Wait until this is to be read."""
        try:
            until(lambda: text in self.read(), f"{text!r} in the terminal")
        except AssertionError as error:
            raise AssertionError(f"{error}; there is {self.said!r}") from None

    def read(self) -> str:
        """All that could be read so far."""
        while select.select([self._near], [], [], 0)[0]:
            try:
                data = os.read(self._near, 4096)
            except OSError:
                break
            if not data:
                break
            self.said += self._decoder.decode(data)
        return self.said

    def hang_up(self) -> int:
        """Close the window, and wait for the end; the exit code."""
        os.close(self._near)
        return self._process.wait()

    def end(self) -> int:
        """Wait for the end; the exit code."""
        until(lambda: (self.read(), self._process.poll() is not None)[1], "the command ends")
        self.read()
        os.close(self._near)
        return self._process.wait()


def talk(address: str, data: bytes) -> bytes:
    """All that comes back for all that is sent; the sending half ends before anything else does."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as near:
        sending = threading.Thread(target=_send_all, args=(near, data))
        sending.start()
        found = b"".join(iter(lambda: near.recv(1 << 16), b""))
        sending.join()
        return found


def _send_all(near: socket.socket, data: bytes) -> None:
    near.sendall(data)
    near.shutdown(socket.SHUT_WR)
