"""An ssh connection to an engine at `ssh://[USER@]HOST[:PORT][/SOCKET]`, through which all its calls go.

It is the user's `ssh` with everything that is configured for it (keys, agent, known hosts, jump hosts); it never prompts.
"""

import atexit
import itertools
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ....agent.polling import wait_until
from ....errors import Unreachable
from ....paths import make_private, runtime_root

_SOCKET = "/var/run/docker.sock"
_TIMEOUT, _POLL_SECONDS = 40.0, 0.02
_NUMBERS = itertools.count()
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "30",
    "ExitOnForwardFailure": "yes",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "ControlPath": "none",
}


@dataclass(frozen=True)
class SshTarget:
    """The machine of an engine, and how ssh connects to it."""

    address: str
    """`ssh://[USER@]HOST[:PORT][/SOCKET]`."""
    config: Path | None = None
    """What ssh reads instead of the user's configuration."""


class Tunnel:
    """A socket of this machine that is forwarded to the engine's while this process lives."""

    def __init__(self, target: SshTarget) -> None:
        """Connect.

        Raises:
            Unreachable: with the last line that ssh printed.
        """
        self._socket = _socket_path()
        # `cat` ends when its input does, so the tunnel ends with this process, however that ends.
        self._process = subprocess.Popen(
            _command(target, self._socket),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.close)
        wait_until(lambda: self._socket.exists() or not self.is_alive(), _TIMEOUT, _POLL_SECONDS)
        if not self._socket.exists():
            self._process.terminate()
            reason = self._last_error_line()
            self.close()
            raise Unreachable(f"the Docker engine at {target.address} does not respond ({reason})")

    @property
    def address(self) -> str:
        """The engine's address on this machine."""
        return f"unix://{self._socket}"

    def is_alive(self) -> bool:
        """Whether ssh runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the connection."""
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe:
                pipe.close()
        self._socket.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.parent.rmdir()
        atexit.unregister(self.close)

    def _last_error_line(self) -> str:
        text = self._process.stderr.read().decode("utf-8", "replace") if self._process.stderr else ""
        return text.strip().splitlines()[-1] if text.strip() else "ssh printed no error"


def _socket_path() -> Path:
    """A path for the socket of this tunnel alone: another one to the same name may lead to a machine that was replaced. Those of
    processes that were killed are removed."""
    root = runtime_root()
    make_private(root)
    for socket in root.glob("ssh-*.sock"):
        if not _is_own_process(int(socket.stem.split("-")[1])):
            socket.unlink(missing_ok=True)
    return root / f"ssh-{os.getpid()}-{next(_NUMBERS)}.sock"


def _is_own_process(pid: int) -> bool:
    """Whether a process of this user has this id: the folder is private, and an id is used again by others."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _command(target: SshTarget, socket: Path) -> list[str]:
    url = urlsplit(target.address)
    name = f"{url.username}@{url.hostname}" if url.username else str(url.hostname)
    port = ["-p", str(url.port)] if url.port else []
    options = [part for key, value in _OPTIONS.items() for part in ("-o", f"{key}={value}")]
    config_option = ["-F", str(target.config)] if target.config else []
    return ["ssh", "-T", *config_option, *options, *port, "-L", f"{socket}:{url.path or _SOCKET}", "--", name, "cat"]
