"""How this computer connects to an engine: by a socket, over TLS, or through ssh.

The SDK's own ssh opens an ssh connection for each of its connections, and has no settings for ssh; its sockets cannot close the sending
half over TLS. An ssh connection here is the user's `ssh` to `ssh://[USER@]HOST[:PORT][/SOCKET]` with everything that is configured for
it (keys, agent, known hosts, jump hosts), and all calls go through it; it never prompts.
"""

import atexit
import io
import itertools
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import docker
from docker.transport import UnixHTTPAdapter
from docker.utils import kwargs_from_env

from ....agent.system.polling import wait_until
from ....errors import Unreachable
from ....paths import make_private, runtime_root

CALL_SECONDS = 60
"""The timeout of one call."""

_CHUNK = 1 << 16
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
    for path in root.glob("ssh-*.sock"):
        if not _is_own_process(int(path.stem.split("-")[1])):
            path.unlink(missing_ok=True)
    return root / f"ssh-{os.getpid()}-{next(_NUMBERS)}.sock"


def _is_own_process(pid: int) -> bool:
    """Whether a process of this user has this id: the folder is private, and an id is used again by others."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _command(target: SshTarget, forwarded: Path) -> list[str]:
    url = urlsplit(target.address)
    name = f"{url.username}@{url.hostname}" if url.username else str(url.hostname)
    port = ["-p", str(url.port)] if url.port else []
    options = [part for key, value in _OPTIONS.items() for part in ("-o", f"{key}={value}")]
    config_option = ["-F", str(target.config)] if target.config else []
    return ["ssh", "-T", *config_option, *options, *port, "-L", f"{forwarded}:{url.path or _SOCKET}", "--", name, "cat"]


SshRoute = Callable[[str], SshTarget]
"""Finds the machine behind an address that is not an engine's own, when a connection to it is opened."""


class _SinglePoolAdapter(UnixHTTPAdapter):
    """The SDK's adapter has a connection pool for each URL; this one has a single pool."""

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """The connections to the socket, for every URL."""
        return super().get_connection("http+docker://engine", proxies)


class EngineConnection:
    """The SDK's client for one address, with the ssh tunnel that it needs; threads share it."""

    def __init__(self, address: str, ssh_route: SshRoute | None) -> None:
        self._address = address
        self._ssh_route = ssh_route
        self._lock = threading.Lock()
        self._client: docker.APIClient | None = None
        self._tunnel: Tunnel | None = None

    @property
    def is_new(self) -> bool:
        """Whether no call has used it yet."""
        return self._client is None

    def client(self) -> docker.APIClient:
        """The client, connected when it is first needed."""
        with self._lock:
            if self._client is None:
                reachable = self._reachable_address()
                client = docker.APIClient(reachable, tls=tls_settings(self._address), timeout=CALL_SECONDS)
                if reachable.startswith("unix:"):
                    client.close()  # the connection by which the SDK has asked for the engine's version
                    client.mount("http+docker://", _SinglePoolAdapter(f"http+{reachable}", timeout=CALL_SECONDS))
                self._client = client
            return self._client

    def _reachable_address(self) -> str:
        if self._ssh_route is None and not self._address.startswith("ssh://"):
            return self._address
        if self._tunnel is None or not self._tunnel.is_alive():
            self._tunnel = Tunnel(self._ssh_route(self._address) if self._ssh_route else SshTarget(self._address))
        return self._tunnel.address

    def drop(self, stale: docker.APIClient) -> None:
        """Discard a stale client, unless another thread has already replaced it."""
        with self._lock:
            if self._client is stale:
                self._client = None
                if self._tunnel is not None:
                    self._tunnel.close()
                self._tunnel = None

    def open_socket(self, timeout: float | None) -> "socket.socket | TlsConnection":
        """A separate connection for a two-way stream of bytes; `timeout` limits each wait for them, None waits for ever. A call must
        have been made just before: it replaces a stale tunnel.

        Raises:
            OSError: the engine does not respond.
        """
        client = self.client()
        with self._lock:
            local = urlsplit(self._reachable_address())
        if local.scheme == "unix":
            plain = socket.socket(socket.AF_UNIX)
            plain.settimeout(timeout)
            plain.connect(local.path)
            return plain
        url = urlsplit(client.base_url)
        plain = socket.create_connection((url.hostname, url.port), CALL_SECONDS)
        plain.settimeout(timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if url.scheme != "https":
            return plain
        return TlsConnection(plain, str(url.hostname), tls_context(client.verify, client.cert))


_CONNECTIONS: dict[str, EngineConnection] = {}


def shared_connection(address: str, ssh_route: SshRoute | None) -> EngineConnection:
    """The connection of this process to an address: all clusters on one engine share it."""
    return _CONNECTIONS.setdefault(address, EngineConnection(address, ssh_route))


def tls_settings(address: str) -> Any:
    """The SDK's settings of TLS for an address, from Docker's environment variables; False without TLS."""
    return kwargs_from_env(environment={**os.environ, "DOCKER_HOST": address}).get("tls", False)


def tls_context(verify: bool | str | None, certificate: str | tuple[str, str] | None) -> ssl.SSLContext:
    """The TLS settings of `requests`: a file of authorities or whether to verify, and the client's certificate and key."""
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*([certificate] if isinstance(certificate, str) else certificate))
    return context


class TlsConnection(io.RawIOBase):
    """A TLS connection that one thread may read while another writes, with a sending half that can be closed alone.

    `ssl.SSLSocket` promises neither: https://docs.python.org/3/library/ssl.html#ssl.SSLSocket.unwrap.
    """

    def __init__(self, plain: socket.socket, host: str, context: ssl.SSLContext) -> None:
        """Do the handshake.

        Raises:
            OSError: it fails.
        """
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self._state_lock, self._send_lock = threading.Lock(), threading.Lock()
        self._read_early = b""
        while not self._handshake_done():
            self._receive()
        self._flush()

    def _handshake_done(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        return True

    def _receive(self) -> None:
        data = self._plain.recv(_CHUNK)
        with self._state_lock:
            if data:
                self._in.write(data)
            else:
                self._in.write_eof()

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.sendall(self._out.read())

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes; 0 at the end."""
        while True:
            with self._state_lock:
                try:
                    data = self._read_early[: len(buffer)] or self._tls.read(len(buffer))
                    self._read_early = self._read_early[len(data) :]
                    break
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return 0
            self._receive()
        buffer[: len(data)] = data
        return len(data)

    def _read_pending(self) -> None:
        """Read what has arrived: OpenSSL discards it when it closes the sending half."""
        with suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            while data := self._tls.read(_CHUNK):
                self._read_early += data

    def makefile(self, mode: str, size: int) -> io.BufferedReader:
        """A buffered reader of this connection."""
        return io.BufferedReader(self, size)

    def sendall(self, data: bytes | memoryview) -> None:
        """Send bytes."""
        with self._send_lock:
            with self._state_lock:
                self._tls.write(data)
                ready = self._out.read()
            self._plain.sendall(ready)

    def shutdown(self, how: int) -> None:
        """Close the sending half, or both with SHUT_RDWR."""
        if how == socket.SHUT_RDWR:
            self._plain.shutdown(how)
            return
        with self._send_lock:
            with self._state_lock:
                self._read_pending()
                with suppress(ssl.SSLError):  # the receiving half stays open
                    self._tls.unwrap()
                ready = self._out.read()
            self._plain.sendall(ready)

    def close(self) -> None:
        """Close the connection."""
        self._plain.close()
        super().close()
