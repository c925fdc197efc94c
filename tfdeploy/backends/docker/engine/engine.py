"""The Docker engine that manages the Swarm: one connection per address, and errors that name the engine.

Docker's SDK: https://docker-py.readthedocs.io. Engine API: https://docs.docker.com/reference/api/engine/.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NotRequired, TypedDict, TypeVar
from urllib.parse import urlsplit

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.transport import UnixHTTPAdapter
from docker.utils import kwargs_from_env

from ....errors import BackendError, SpecError, Unreachable
from .ssh_tunnel import SshTarget, Tunnel
from .tls import TlsConnection, tls_context

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
CALL_SECONDS = 60
"""The timeout of one call."""

_NOT_A_MANAGER = 503
_WITHOUT_LEADER = ("does not have a leader", "context deadline exceeded")
"""What a manager responds that has lost the other managers."""

_OUT_OF_SEQUENCE = "out of sequence"
"""What a manager responds to an update of something that has changed since it was read."""

_UPDATE_ATTEMPTS = 10
_UPDATE_PAUSE = 0.1

T = TypeVar("T")

SshRoute = Callable[[str], SshTarget]
"""Finds the machine behind an address that is not an engine's own, when a connection to it is opened."""


def engine_address(configured: str) -> str:
    """The engine's address: the configured one, else `$DOCKER_HOST`, else this machine's socket."""
    return configured or os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS


def is_open_tcp(address: str) -> bool:
    """Whether calls to this address go over the network without TLS."""
    is_remote = address.startswith(("tcp:", "http:")) and urlsplit(address).hostname not in (
        "localhost",
        "127.0.0.1",
        "::1",
    )
    return is_remote and not kwargs_from_env(environment={**os.environ, "DOCKER_HOST": address}).get("tls", False)


class _SinglePoolAdapter(UnixHTTPAdapter):
    """The SDK's adapter has a connection pool for each URL; this one has a single pool."""

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        """The connections to the socket, for every URL."""
        return super().get_connection("http+docker://engine", proxies)


class _Connection:
    """The SDK's client for one address, with the ssh tunnel that it needs; threads share it."""

    def __init__(self, address: str, ssh_route: SshRoute | None) -> None:
        self._address = address
        self._ssh_route = ssh_route
        self._lock = threading.Lock()
        self._client: docker.APIClient | None = None
        self._tunnel: Tunnel | None = None
        self._calls = 0

    @property
    def is_new(self) -> bool:
        """Whether no call has used it yet."""
        return self._client is None

    def client(self) -> docker.APIClient:
        """The client, connected when it is first needed."""
        with self._lock:
            if self._client is None:
                tls = kwargs_from_env(environment={**os.environ, "DOCKER_HOST": self._address}).get("tls", False)
                reachable = self._reachable_address()
                client = docker.APIClient(reachable, tls=tls, timeout=CALL_SECONDS)
                if reachable.startswith("unix:"):
                    client.close()  # the connection by which the SDK has asked for the engine's version
                    client.mount("http+docker://", _SinglePoolAdapter(f"http+{reachable}", timeout=CALL_SECONDS))
                self._client = client
            return self._client

    def make(self, request: Callable[[Any], T], client: docker.APIClient) -> T:
        """Make a call."""
        with self._lock:
            self._calls += 1
        try:
            return request(client)
        finally:
            with self._lock:
                self._calls -= 1

    def endpoint(self) -> tuple[docker.APIClient, str]:
        """The client, and the address that this computer connects to: for ssh the tunnel's. What the client holds open on this machine
        for later calls is closed, so that the caller's connection takes its place. Over a network another connection takes long."""
        client = self.client()
        with self._lock:
            if not self._calls and self._address.startswith("unix:"):
                client.close()
            return client, self._reachable_address()

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


class _Connections:
    """The connections of this process by address, so that all clusters on one engine share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_address: dict[str, _Connection] = {}

    def get(self, address: str, ssh_route: SshRoute | None) -> _Connection:
        """The connection of an address."""
        with self._lock:
            return self._by_address.setdefault(address, _Connection(address, ssh_route))


_CONNECTIONS = _Connections()


class EnginePlace(TypedDict):
    """What identifies an engine, a `PlaceRef`; empty where it reports none."""

    id: str
    """The engine's id, which its data folder has."""
    name: str
    """The hostname of its machine."""
    swarm: NotRequired[str]
    """The id of the Swarm that it manages; missing where there is none, and in older states."""


class Engine:
    """The engine at an address; `ssh_route` where another backend knows the machine that it leads to."""

    def __init__(self, host: str, ssh_route: SshRoute | None = None) -> None:
        self.host = host
        self._connection = _CONNECTIONS.get(host, ssh_route)

    def call(self, request: Callable[[Any], T]) -> T:
        """Make an idempotent call to the engine's API; it is retried once when the connection turns out to be stale.

        Raises:
            Unreachable: the engine does not respond, or does not manage its Swarm now.
            docker.errors.APIError: it refuses the call.
        """
        with self._errors():
            if not self._connection.is_new:
                client = self._connection.client()
                try:
                    return self._connection.make(request, client)
                except (requests.ConnectionError, requests.Timeout):
                    self._connection.drop(client)
            return self._connection.make(request, self._connection.client())

    def call_once(self, request: Callable[[Any], T]) -> T:
        """Make a call that must not be repeated; a stale connection is replaced before it.

        Raises:
            Unreachable: the engine does not respond; it may have done what the call asks for.
            docker.errors.APIError: it refuses the call.
        """
        if not self._connection.is_new:
            self.call(lambda api: api.ping())
        with self._errors():
            return self._connection.make(request, self._connection.client())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except APIError as error:
            reason = str(error.explanation)
            if error.status_code == _NOT_A_MANAGER or any(sign in reason for sign in _WITHOUT_LEADER):
                raise Unreachable(f"the Docker engine at {self.host} does not manage a Swarm now ({reason})") from None
            raise
        except Unreachable:
            raise
        except (requests.RequestException, DockerException, OSError) as error:
            raise self._unreachable(_innermost_reason(error)) from None

    def _unreachable(self, reason: object) -> Unreachable:
        return Unreachable(f"the Docker engine at {self.host} does not respond ({reason})")

    def open_socket(self, timeout: float | None = None) -> socket.socket | TlsConnection:
        """A separate connection for a two-way stream of bytes; `timeout` limits each wait for them, None waits for ever. A call must
        have been made just before: it replaces a stale tunnel.

        Raises:
            Unreachable: the engine does not respond.
        """
        client, address = self._connection.endpoint()
        local = urlsplit(address)
        try:
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
        except OSError as error:
            raise self._unreachable(error) from None

    @cached_property
    def _info(self) -> dict[str, Any]:
        """What the engine reports of itself, the first time that this object asks: a plan needs it in several places."""
        info: dict[str, Any] = self.call(lambda api: api.info())
        return info

    def name(self) -> str:
        """The hostname of the machine that the engine runs on."""
        return str(self._info["Name"])

    def place(self) -> EnginePlace:
        """Which engine it is, and which Swarm it manages."""
        swarm = self._info["Swarm"].get("Cluster") or {}
        place: EnginePlace = {"id": self._info.get("ID", ""), "name": self._info["Name"]}
        return {**place, "swarm": swarm["ID"]} if swarm.get("ID") else place

    def disk_usage(self, seconds: float) -> dict[str, Any]:
        """What the engine's data takes, where it computes that in so many seconds.

        Raises:
            Unreachable: it does not.
        """
        with self._errors():
            client = self._connection.client()
            # The SDK's `df` has neither a filter, which engines before Docker 23 ignore, nor a timeout.
            response = client.get(f"{client.base_url}/system/df", params={"type": "volume"}, timeout=seconds)
            usage: dict[str, Any] = response.json()
            return usage

    def swarm_info(self) -> dict[str, Any]:
        """The engine's information about its Swarm (`NodeID`, `NodeAddr`, `Cluster`, …).

        Raises:
            SpecError: it does not manage one; the remedy has the command that creates it.
            Unreachable: it does not respond.
        """
        swarm: dict[str, Any] = self._info["Swarm"]
        if not swarm.get("ControlAvailable"):
            is_worker = swarm.get("LocalNodeState") == "active"
            wrong = "is a worker of its Swarm, not a manager" if is_worker else "is not in swarm mode"
            command = f"docker --host {self.host}" if self.host != DEFAULT_ADDRESS else "docker"
            init = f"Run `{command} swarm init --advertise-addr 127.0.0.1`"
            remedy = "Set docker.host to a manager" if is_worker else init
            raise SpecError("docker.host", f"the Docker engine at {self.host} {wrong}", f"{remedy}.")
        return swarm

    def remove(self, request: Callable[[Any], Any]) -> None:
        """Remove something; no error when it does not exist."""
        try:
            self.call(request)
        except NotFound:
            return


@contextmanager
def engine_errors(action: str) -> Iterator[None]:
    """Raise a refusal of the engine as a `BackendError` that names the action."""
    try:
        yield
    except APIError as error:
        raise BackendError(f"{action}: {error.explanation or error}") from None


@contextmanager
def ignore_conflict() -> Iterator[None]:
    """Ignore that a service or a node was updated by somebody else, or by the Swarm, since it was read."""
    try:
        yield
    except APIError as error:
        if _OUT_OF_SEQUENCE not in str(error.explanation):
            raise


def retry_conflicts(action: str, update: Callable[[], bool]) -> None:
    """Call `update`, which reads something of the Swarm and updates it, until it returns True without a conflict.

    Raises:
        BackendError: the engine refuses the update, or there is a conflict every time.
    """
    with engine_errors(action):
        for _ in range(_UPDATE_ATTEMPTS):
            with ignore_conflict():
                if update():
                    return
            time.sleep(_UPDATE_PAUSE)
    raise BackendError(f"{action}: something else updates it at the same time")


def _innermost_reason(error: Exception) -> str:
    """The SDK wraps the reason several times."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    return str(cause) or type(cause).__name__
