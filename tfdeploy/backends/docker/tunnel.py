"""An engine at `ssh://[USER@]HOST[:PORT][/SOCKET]`, brought near: one ssh connection, through which all calls go.

The user's own `ssh` is asked, with all that is configured for it (keys, agent, known hosts, jump hosts); it never asks back.
"""

import atexit
import os
import subprocess
import time
import zlib
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import Unreachable
from ..folders import make_private, runtime_root

_SOCKET = "/var/run/docker.sock"
_SECONDS = 40.0
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "30",
    "ExitOnForwardFailure": "yes",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "ControlPath": "none",
}


class Tunnel:
    """A socket of this machine that leads to the engine's, for as long as this process lives."""

    def __init__(self, host: str, config: Path | None = None) -> None:
        """Connect; `config` is what ssh reads in the place of the user's own configuration.

        Raises:
            Unreachable: with what ssh said.
        """
        self._host = host
        self._socket = _socket(f"{host} {config or ''}")
        # What ends when its input does: no tunnel outlives us, whatever ends us.
        self._process = subprocess.Popen(
            _command(host, self._socket, config),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.close)
        deadline = time.monotonic() + _SECONDS
        while not self._socket.exists():
            if not self.alive() or time.monotonic() > deadline:
                self._process.terminate()
                said = self._said()
                self.close()
                raise Unreachable(f"the Docker engine at {host} does not answer ({said})")
            time.sleep(0.02)

    @property
    def address(self) -> str:
        """Where the engine answers on this machine."""
        return f"unix://{self._socket}"

    def alive(self) -> bool:
        """Whether the connection stands."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe:
                pipe.close()
        self._socket.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.parent.rmdir()
        atexit.unregister(self.close)

    def _said(self) -> str:
        text = self._process.stderr.read().decode("utf-8", "replace") if self._process.stderr else ""
        return text.strip().splitlines()[-1] if text.strip() else "ssh said nothing"


def _socket(host: str) -> Path:
    """A place for the socket; those of processes that were killed are removed."""
    root = runtime_root()
    make_private(root)
    for left in root.glob("ssh-*.sock"):
        try:
            os.kill(int(left.stem.split("-")[1]), 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)
    return root / f"ssh-{os.getpid()}-{zlib.crc32(host.encode()):08x}.sock"


def _command(host: str, socket: Path, config: Path | None) -> list[str]:
    url = urlsplit(host)
    name = f"{url.username}@{url.hostname}" if url.username else str(url.hostname)
    port = ["-p", str(url.port)] if url.port else []
    options = [part for key, value in _OPTIONS.items() for part in ("-o", f"{key}={value}")]
    given = ["-F", str(config)] if config else []
    return ["ssh", "-T", *given, *options, *port, "-L", f"{socket}:{url.path or _SOCKET}", "--", name, "cat"]
