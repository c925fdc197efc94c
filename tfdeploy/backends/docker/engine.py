"""The engine that manages the Swarm: one connection for each address, and errors that say which engine it was.

Docker's SDK: https://docker-py.readthedocs.io. Engine API: https://docs.docker.com/reference/api/engine/.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.transport import UnixHTTPAdapter
from docker.utils import kwargs_from_env

from ...errors import BackendError, SpecError, Unreachable
from .secured import Secured, context
from .tunnel import Tunnel

DEFAULT = "unix:///var/run/docker.sock"
SECONDS = 60
"""How long one call may take."""

_NO_MANAGER = 503
_HEADLESS = ("does not have a leader", "context deadline exceeded")
"""What a manager says that has lost the others."""

_SEQUENCE = "out of sequence"
"""What a manager says of a change to something that has changed since it was looked at."""

_TRIES = 10
_PAUSE = 0.1

T = TypeVar("T")

ROUTES: dict[str, Callable[[str], tuple[str, Path]]] = {}
"""Schemes of other backends for engines that ssh leads to: from such an address to one for ssh, and the configuration for it."""

_clients: dict[str, docker.APIClient] = {}
_tunnels: dict[str, Tunnel] = {}
_lock = threading.Lock()


def address(given: str) -> str:
    """The engine's address: what is given, else `$DOCKER_HOST`, else the socket of this machine's own."""
    return given or os.environ.get("DOCKER_HOST") or DEFAULT


class _OnePool(UnixHTTPAdapter):
    """The SDK's own adapter keeps a connection for each URL; this one uses what is there."""

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """The connections to the socket, whatever is asked for."""
        return super().get_connection("http+docker://engine", proxies)


class Engine:
    """The engine at an address."""

    def __init__(self, host: str) -> None:
        self.host = host

    def call(self, do: Callable[[Any], T]) -> T:
        """Do something with the engine's API; once more with a new connection where an old one has gone stale.

        Raises:
            Unreachable: it does not answer.
            docker.errors.APIError: it answers with a no.
        """
        try:
            return self._call(do)
        except APIError as error:
            words = str(error.explanation)
            if error.status_code == _NO_MANAGER or any(sign in words for sign in _HEADLESS):
                raise Unreachable(f"the Docker engine at {self.host} manages no Swarm now ({words})") from None
            raise

    def _call(self, do: Callable[[Any], T]) -> T:
        old = _clients.get(self.host)
        if old is not None:
            try:
                return do(old)
            except (requests.ConnectionError, requests.Timeout):
                self._forget(old)
        try:
            return do(self._connected())
        except (APIError, Unreachable):
            raise
        except (requests.RequestException, DockerException, OSError) as error:
            raise Unreachable(f"the Docker engine at {self.host} does not answer ({_words(error)})") from None

    def _connected(self) -> docker.APIClient:
        with _lock:
            if self.host not in _clients:
                tls = kwargs_from_env(environment={**os.environ, "DOCKER_HOST": self.host}).get("tls", False)
                near = self._near()
                _clients[self.host] = docker.APIClient(near, tls=tls, timeout=SECONDS)
                if near.startswith("unix:"):
                    _clients[self.host].mount("http+docker://", _OnePool(f"http+{near}", timeout=SECONDS))
            return _clients[self.host]

    def _near(self) -> str:
        """The address to connect to; for ssh that of a tunnel."""
        scheme = self.host.partition("://")[0]
        if scheme != "ssh" and scheme not in ROUTES:
            return self.host
        if self.host not in _tunnels or not _tunnels[self.host].alive():
            _tunnels[self.host] = Tunnel(*ROUTES[scheme](self.host)) if scheme in ROUTES else Tunnel(self.host)
        return _tunnels[self.host].address

    def _forget(self, stale: docker.APIClient) -> None:
        """Drop a connection that has gone stale, unless somebody has done so already."""
        with _lock:
            if _clients.get(self.host) is stale:
                del _clients[self.host]
                tunnel = _tunnels.pop(self.host, None)
                if tunnel is not None:
                    tunnel.close()

    def connection(self, seconds: float | None = None) -> socket.socket | Secured:
        """A connection of its own, for bytes that go both ways; it waits for them so long, or for ever.

        Raises:
            Unreachable: it does not answer.
        """
        self.call(lambda api: api.ping())  # that a tunnel has gone stale is seen, and mended, there
        api, near = self._connected(), urlsplit(self._near())
        try:
            if near.scheme == "unix":
                plain = socket.socket(socket.AF_UNIX)
                plain.settimeout(seconds)
                plain.connect(near.path)
                return plain
            where = urlsplit(api.base_url)
            plain = socket.create_connection((where.hostname, where.port), SECONDS)
            plain.settimeout(seconds)
            if where.scheme != "https":
                return plain
            return Secured(plain, str(where.hostname), context(api.verify, api.cert))
        except OSError as error:
            raise Unreachable(f"the Docker engine at {self.host} does not answer ({error})") from None

    def swarm(self) -> dict[str, Any]:
        """What the engine says of its Swarm (`NodeID`, `NodeAddr`, `Cluster`, …).

        Raises:
            SpecError: it manages none; the message has the command that mends it.
            Unreachable: it does not answer.
        """
        swarm: dict[str, Any] = self.call(lambda api: api.info())["Swarm"]
        if not swarm.get("ControlAvailable"):
            is_worker = swarm.get("LocalNodeState") == "active"
            wrong = "is a worker of its Swarm, not a manager" if is_worker else "is not in swarm mode"
            name = f"docker --host {self.host}" if self.host != DEFAULT else "docker"
            remedy = (
                "Name a manager in docker_host" if is_worker else f"Run `{name} swarm init --advertise-addr 127.0.0.1`"
            )
            raise SpecError("docker_host", f"the Docker engine at {self.host} {wrong}", f"{remedy}.")
        return swarm

    def gone(self, remove: Callable[[Any], Any]) -> None:
        """Remove something; not there is as good."""
        try:
            self.call(remove)
        except NotFound:
            return


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """The engine's no becomes ours: a plain error that says what was tried."""
    try:
        yield
    except APIError as error:
        raise BackendError(f"{what}: {error.explanation or error}") from None


@contextmanager
def another_time() -> Iterator[None]:
    """Somebody else, the Swarm itself too, was quicker to change a service or a node: it is looked at again."""
    try:
        yield
    except APIError as error:
        if _SEQUENCE not in str(error.explanation):
            raise


def insist(what: str, change: Callable[[], bool]) -> None:
    """Look at something of the Swarm and change it, until `change` says that it is as it should be.

    Raises:
        BackendError: the engine refuses it, or others go on changing it.
    """
    with refusals(what):
        for _ in range(_TRIES):
            with another_time():
                if change():
                    return
            time.sleep(_PAUSE)
    raise BackendError(f"{what}: somebody else changes it at the same time")


def _words(error: Exception) -> str:
    """The innermost reason: the SDK wraps it several times."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    return str(cause) or type(cause).__name__
