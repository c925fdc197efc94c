"""An API server that stores objects, with the controllers of Kubernetes as far as a test plays them."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from tests.clusters import cluster_ref
from tests.unit.props import run_props, task_props
from tfdeploy.backends.base import CONTROLLER, RunProps, TaskProps
from tfdeploy.backends.kubernetes.api import CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, ApiServer
from tfdeploy.backends.kubernetes.cluster_objects import ClusterObjects
from tfdeploy.backends.kubernetes.labels import HOSTNAME_LABEL, object_name, prefix
from tfdeploy.backends.kubernetes.pods import PodMount, PodSettings, controller_set
from tfdeploy.backends.kubernetes.resources import PodObjectsProvider, claim
from tfdeploy.backends.kubernetes.task_runner import KubernetesTaskRunner

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


RUNNER, PROVIDER = KubernetesTaskRunner(), PodObjectsProvider()
OWN, RECORD = prefix(CLUSTER), object_name(CLUSTER, "record")
WORKER, CONTROLLERS = object_name(CLUSTER, "worker-1"), object_name(CLUSTER, CONTROLLER)
PROPS: dict[str, Any] = {
    "cluster": CLUSTER,
    "token": "a-token",
    "secrets": {"KEY": "a-value"},
    "claims": [claim(CLUSTER, "record", "1Gi", "ReadWriteOnce", "")],
    "kubeconfig": "",
}


def made() -> tuple[dict[str, Any], TaskProps, RunProps]:
    """The props of the shared objects, of worker-1 and of the run, which all exist then."""
    shared = PROVIDER.create(PROPS).outs
    assert shared is not None
    depends = {"agent": shared["agent"], "token": object_name(CLUSTER, "token"), "secrets": shared["secrets_name"]}
    own = {"cluster": CLUSTER, "token": "a-token", "dependencies": depends}
    settings = PodSettings("an-image", mounts=(PodMount("of-the-user", "/data"),))
    task = cast(TaskProps, {**task_props(), **own, "container": settings.to_dict()})
    run = cast(RunProps, {**run_props(), **own, "container": PodSettings("an-image", record=RECORD).to_dict()})
    RUNNER.create_task(task)
    OBJECTS.apply(controller_set(run))
    return shared, task, run


OBJECTS_LABELS = {"tfdeploy/cluster-id": CLUSTER["id"]}
SILENT = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "False"}],
    "containerStatuses": [{"state": {"running": {}}}],
}


def pod(name: str, **status: Any) -> dict[str, Any]:
    labels = {**OBJECTS_LABELS, HOSTNAME_LABEL: "worker-1"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "node-2"}, "status": status}
