"""An API server that stores objects, with the controllers of Kubernetes as far as a test plays them."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.clusters import cluster_ref
from tfdeploy.backends.kubernetes.api import CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, ApiServer
from tfdeploy.backends.kubernetes.cluster_objects import ClusterObjects

HOME = "training@https://kube.example.com"
CLUSTER = cluster_ref("kubernetes", HOME)
OBJECTS = ClusterObjects(ApiServer(HOME), CLUSTER)


class StoredApi:
    """Objects by path."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.forbidden: set[str] = set()
        """The resources, such as `secrets`, that may not be read."""
        self.held: set[str] = set()
        """The paths of objects that do not end when they are deleted."""
        self.calls: list[str] = []

    def request(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> SimpleNamespace:
        """One call; every object has a uid, as on a server."""
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        self.calls.append(f"{method} {path}")
        status, content = self._respond(method, path, query, json.loads(body or b"{}"))
        return SimpleNamespace(status=status, data=json.dumps(content).encode())

    def _respond(self, method: str, path: str, query: Mapping[str, Any], body: dict[str, Any]) -> tuple[int, Any]:
        if self.forbidden & {*path.split("/")}:
            return FORBIDDEN, {"reason": "Forbidden", "message": f"{path} is forbidden"}
        if method == "POST":
            name = f"{path}/{body['metadata']['name']}"
            if name in self.objects:
                return CONFLICT, {"message": f"{name} exists"}
            self.put(name, body)
            return 201, body
        if method == "GET" and path.count("/") == 5 + path.startswith("/apis/"):
            return 200, {"items": [item for name, item in self.objects.items() if name.rpartition("/")[0] == path]}
        if path not in self.objects:
            return NOT_FOUND, {"message": f"{path} not found"}
        if method == "DELETE" and path in self.held:
            self.objects[path]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif method == "DELETE":
            return 200, self.objects.pop(path)
        if method == "PATCH":
            if "clusterIP" in body.get("spec", ()):
                return INVALID, {"message": "spec.clusterIPs[0]: Invalid value: may not change once set"}
            self.objects[path] = merged(self.objects[path], body)
        return 200, self.objects[path]

    def put(self, path: str, item: dict[str, Any]) -> None:
        """Store an object, with what a server adds to it."""
        meta = {"uid": f"of {path}", "creationTimestamp": "2026-01-01T00:00:00Z", **item["metadata"]}
        self.objects[path] = {"status": {}, **json.loads(json.dumps(item)), "metadata": meta}

    def item(self, kind: str, name: str) -> dict[str, Any]:
        """A stored object, which the test may change."""
        return self.objects[OBJECTS.path(kind, name)]


def merged(existing: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    result = dict(existing) if isinstance(existing, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value) if isinstance(value, Mapping) else value
    return result


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> StoredApi:
    """What every `ApiServer` calls."""
    made = StoredApi()
    monkeypatch.setattr(ApiServer, "request", lambda _, *arguments: made.request(*arguments))
    return made
