"""The Docker engine that manages the Swarm: one connection per address, and errors that name the engine.

Docker's SDK: https://docker-py.readthedocs.io. Engine API: https://docs.docker.com/reference/api/engine/.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import requests
from docker.errors import APIError, DockerException, NotFound

from ....errors import BackendError, SpecError, Unreachable
from .connection import SshRoute, TlsConnection, shared_connection, tls_settings

if TYPE_CHECKING:
    from ....plan.inventory import PlaceRef

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
_SIZES_SECONDS = 1.0

_NOT_A_MANAGER = 503
_WITHOUT_LEADER = ("does not have a leader", "context deadline exceeded")
"""What a manager responds that has lost the other managers."""

_OUT_OF_SEQUENCE = "out of sequence"
"""What a manager responds to an update of something that has changed since it was read."""

_UPDATE_ATTEMPTS = 10
_UPDATE_PAUSE = 0.1

T = TypeVar("T")


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
    return is_remote and not tls_settings(address)


class Engine:
    """The engine at an address; `ssh_route` where another backend knows the machine that it leads to."""

    def __init__(self, host: str, ssh_route: SshRoute | None = None) -> None:
        self.host = host
        self._connection = shared_connection(host, ssh_route)

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
                    return request(client)
                except (requests.ConnectionError, requests.Timeout):
                    self._connection.drop(client)
            return request(self._connection.client())

    def call_once(self, request: Callable[[Any], T]) -> T:
        """Make a call that must not be repeated; a stale connection is replaced before it.

        Raises:
            Unreachable: the engine does not respond; it may have done what the call asks for.
            docker.errors.APIError: it refuses the call.
        """
        if not self._connection.is_new:
            self.call(lambda api: api.ping())
        with self._errors():
            return request(self._connection.client())

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
        """A separate connection: `EngineConnection.open_socket`.

        Raises:
            Unreachable: the engine does not respond.
        """
        try:
            return self._connection.open_socket(timeout)
        except OSError as error:
            raise self._unreachable(error) from None

    @cached_property
    def info(self) -> dict[str, Any]:
        """What the engine reports of itself, the first time that this object asks: a plan needs it in several places."""
        info: dict[str, Any] = self.call(lambda api: api.info())
        return info

    def name(self) -> str:
        """The hostname of the machine that the engine runs on."""
        return str(self.info["Name"])

    def place(self) -> "PlaceRef":
        """Which engine it is, by the id that its data folder has, and which Swarm it manages."""
        swarm = self.info["Swarm"].get("Cluster") or {}
        place: PlaceRef = {"id": self.info.get("ID", ""), "name": self.name()}
        return {**place, "swarm": swarm["ID"]} if swarm.get("ID") else place

    def volume_sizes(self) -> dict[str, int]:
        """The size in bytes of each volume by name; none where the engine does not compute them in a second. It reads each file's size
        for that, and before Docker 23 those of all images and containers."""
        with suppress(BackendError), self._errors():
            client = self._connection.client()
            # The SDK's `df` has neither a filter, which older engines ignore, nor a timeout: after it, the engine stops reading.
            url = f"{client.base_url}/system/df"
            volumes = client.get(url, params={"type": "volume"}, timeout=_SIZES_SECONDS).json().get("Volumes") or []
            sizes = {volume["Name"]: (volume.get("UsageData") or {}).get("Size", -1) for volume in volumes}
            return {name: size for name, size in sizes.items() if size >= 0}  # -1 is that of another driver's volume
        return {}

    def swarm_info(self) -> dict[str, Any]:
        """The engine's information about its Swarm (`NodeID`, `NodeAddr`, `Cluster`, …).

        Raises:
            SpecError: it does not manage one; the remedy has the command that creates it.
            Unreachable: it does not respond.
        """
        swarm: dict[str, Any] = self.info["Swarm"]
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


def retry_conflicts(action: str, update: Callable[[], bool]) -> None:
    """Call `update`, which reads something of the Swarm and updates it, until it returns True and nothing else has updated that
    meanwhile.

    Raises:
        BackendError: the engine refuses the update, or there is a conflict every time.
    """
    with engine_errors(action):
        for _ in range(_UPDATE_ATTEMPTS):
            try:
                if update():
                    return
            except APIError as error:
                if _OUT_OF_SEQUENCE not in str(error.explanation):
                    raise
            time.sleep(_UPDATE_PAUSE)
    raise BackendError(f"{action}: something else updates it at the same time")


def _innermost_reason(error: Exception) -> str:
    """The SDK wraps the reason several times."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    return str(cause) or type(cause).__name__
