"""Calls of an API server: plain REST with JSON, over the connections of the official client. Threads may share an `ApiServer`."""

import http.client
import json
import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes.client import ApiClient

from ...agent.system.polling import Backoff
from ...errors import BackendError, Unreachable
from ...program.plugin_exit import is_cancelled
from .kubeconfig import Kubeconfig, source_of
from .namespace import parse_home

Json = dict[str, Any]

CALL_SECONDS, _CONNECT_SECONDS = 30.0, 5.0
PATIENCE, _FIRST_PATIENCE = 15.0, 2.0
"""How long a call is repeated, in seconds: where the server has responded to the call before, and where not."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 4.0
_TOO_MANY = 429
_CONNECTIONS = 32
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, INVALID = 401, 403, 404, 409, 422

JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""A list without the contents of the objects."""

MERGE = "application/merge-patch+json"


class ApiError(BackendError):
    """A request that the API server refuses.

    Attributes:
        status: the status of the response, such as 404.
        reason: Kubernetes' word for it, such as `AlreadyExists`.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


_responding: set[str] = set()
"""The servers that have responded to the last call of this process."""


@cache
def _client(server: str, _process: int) -> ApiClient:
    """The official client of this process: a fork cannot share its connections."""
    kubeconfig = Kubeconfig(source_of(server))
    configuration = kubeconfig.configuration(kubeconfig.context_of(server))
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.retries = False
    return ApiClient(configuration)


class ApiServer:
    """The API server of a place, for one namespace."""

    def __init__(self, home: str) -> None:
        place = parse_home(home)
        self.server, self.namespace = place.server, place.namespace

    @property
    def client(self) -> ApiClient:
        """The official client.

        Raises:
            SpecError: the kubeconfig does not have the server.
        """
        return _client(self.server, os.getpid())

    def authorization(self) -> dict[str, str]:
        """The header of a request; empty where the user logs in by a certificate. Login commands run again when their credential has
        expired."""
        settings = self.client.configuration.auth_settings()
        return {setting["key"]: setting["value"] for setting in settings.values() if setting["value"]}

    def get(self, path: str, **query: str) -> Json:
        """What is at this path."""
        return self.json("GET", f"{path}?{urlencode(query)}" if query else path)

    def list_metadata(self, path: str, selector: str) -> list[Json] | None:
        """The metadata of the objects with these labels; None where the user may not list them."""
        try:
            response = self.json("GET", f"{path}?{urlencode({'labelSelector': selector})}", accept=METADATA)
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return None
        return [item["metadata"] for item in response["items"] or ()]

    def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """Create an object."""
        return self.json("POST", path, body)

    def json(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = JSON, accept: str = JSON
    ) -> Json:
        """One call with a response in JSON.

        Raises:
            ApiError: the server refuses it.
            Unreachable: the server does not respond.
        """
        data = b"" if body is None else json.dumps(body).encode()
        response = self.request(method, path, data, {"Content-Type": kind, "Accept": accept})
        if response.status >= http.client.BAD_REQUEST:
            raise _error(self.server, response.status, response.data)
        try:
            content: Json = json.loads(response.data)
        except ValueError:
            raise Unreachable(f"{self.server} sent a response that is not JSON") from None
        return content

    def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        """One call, whatever its status. Each call may be repeated: an object is named by its creator, and it is a success that it
        exists, or is gone. So a call whose connection fails is repeated, and one that the server tells to repeat.

        Raises:
            Unreachable: the server does not respond for `PATIENCE`, or not to the first calls of this process.
        """
        all_headers = {**(headers or {}), **self.authorization()}
        deadline = time.monotonic() + (PATIENCE if self.server in _responding else _FIRST_PATIENCE)
        pauses = Backoff(_SHORTEST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                response = self._send(method, path, body, all_headers)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                pauses.fail()
                pause = pauses.seconds
                if not _is_time_left(pause, deadline):
                    _responding.discard(self.server)
                    raise Unreachable(f"the API server at {self.server} does not respond ({error})") from None
            else:
                _responding.add(self.server)
                pause = _requested_pause(response)
                if not pause or not _is_time_left(pause, deadline):
                    return response
            time.sleep(pause)

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        pool: urllib3.PoolManager = self.client.rest_client.pool_manager
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=CALL_SECONDS)
        return pool.request(
            method, self.server + path, body=body or None, headers=headers, timeout=timeout, retries=False
        )


def _is_time_left(pause: float, deadline: float) -> bool:
    return time.monotonic() + pause < deadline and not is_cancelled()


def _requested_pause(response: urllib3.BaseHTTPResponse) -> float:
    """Seconds after which the server wants the call again, as when it has too many or shuts down; 0 if it does not."""
    text = response.headers.get("Retry-After", "")
    is_busy = response.status == _TOO_MANY or response.status >= http.client.INTERNAL_SERVER_ERROR
    return min(float(text), _LONGEST_PAUSE) if is_busy and text.isdigit() else 0.0


def _error(server: str, status: int, content: bytes) -> ApiError:
    try:
        details = json.loads(content)
        reason, message = str(details.get("reason", "")), str(details.get("message") or f"status {status}")
    except (ValueError, AttributeError):
        reason, message = "", content.decode("utf-8", "replace").strip()[:500] or f"status {status}"
    if status == UNAUTHORIZED:
        message = f"{server} does not accept the login of the kubeconfig ({message}). Log in again; `kubectl get pods` tries it"
    return ApiError(status, reason, message)
