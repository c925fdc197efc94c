"""Calls of an API server: plain REST with JSON, over the connections of the official client. Threads may share an `ApiServer`."""

import http.client
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes.client import ApiClient

from ...errors import BackendError, Unreachable
from .home import parse_home
from .kubeconfig import Kubeconfig, source_of

Json = dict[str, Any]

CALL_SECONDS = 30.0
_MOST_RETRIES = 5
_LONGEST_PAUSE = 5.0
_TOO_MANY = 429
_CONNECTIONS = 32
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT = 401, 403, 404, 409

JSON = "application/json"
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

    def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """Create an object."""
        return self.json("POST", path, body)

    def json(self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = JSON) -> Json:
        """One call with a response in JSON.

        Raises:
            ApiError: the server refuses it.
            Unreachable: the server does not respond.
        """
        data = b"" if body is None else json.dumps(body).encode()
        for retry in range(_MOST_RETRIES + 1):
            response = self.request(method, path, data, {"Content-Type": kind, "Accept": JSON})
            if response.status != _TOO_MANY or retry == _MOST_RETRIES:
                break
            time.sleep(min(float(response.headers.get("Retry-After", 1)), _LONGEST_PAUSE))
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
        """One call, whatever its status. One that only reads is repeated, since the server may have closed its connection before.

        Raises:
            Unreachable: the server does not respond.
        """
        pool = self.client.rest_client.pool_manager
        all_headers = {**(headers or {}), **self.authorization()}

        def send() -> urllib3.BaseHTTPResponse:
            url, seconds = self.server + path, CALL_SECONDS
            response: urllib3.BaseHTTPResponse = pool.request(
                method, url, body=body or None, headers=all_headers, timeout=seconds, retries=False
            )
            return response

        try:
            if method == "GET":
                with suppress(urllib3.exceptions.HTTPError, OSError):
                    return send()
            return send()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"the API server at {self.server} does not respond ({error})") from None


def _error(server: str, status: int, content: bytes) -> ApiError:
    try:
        details = json.loads(content)
        reason, message = str(details.get("reason", "")), str(details.get("message") or f"status {status}")
    except (ValueError, AttributeError):
        reason, message = "", content.decode("utf-8", "replace").strip()[:500] or f"status {status}"
    if status == UNAUTHORIZED:
        message = f"{server} does not accept the login of the kubeconfig ({message}). Log in again; `kubectl get pods` tries it"
    return ApiError(status, reason, message)
