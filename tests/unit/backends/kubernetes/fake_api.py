"""An API server that only has what a test gives it."""

from collections.abc import Mapping
from typing import Any

from tfdeploy.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError, ApiServer

EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_REVIEWS = "/apis/authorization.k8s.io/v1"


class FakeApi(ApiServer):
    """Objects by path, and what the user is allowed to do."""

    def __init__(self, objects: Mapping[str, Any], rules: list[Any], allowed: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        super().__init__("training@https://kube.example.com")
        self.objects = {
            "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.4"},
            "/api/v1/namespaces/training": {"metadata": {"name": "training"}},
            **objects,
        }
        self.rules = rules
        self.allowed = allowed
        """`VERB RESOURCE` that reviews of single verbs allow."""
        self.posts = 0

    def get(self, path: str, **query: str) -> Any:
        value = self.objects.get(path)
        if value is None:
            raise ApiError(NOT_FOUND, "NotFound", f"{path} not found")
        if isinstance(value, ApiError):
            raise value
        if value == FORBIDDEN:
            raise ApiError(FORBIDDEN, "Forbidden", f"{path} is forbidden")
        return value

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        self.posts += 1
        if path == f"{_REVIEWS}/selfsubjectrulesreviews":
            assert body["spec"] == {"namespace": "training"}
            return {"status": {"resourceRules": self.rules, "incomplete": bool(self.allowed)}}
        assert path == f"{_REVIEWS}/selfsubjectaccessreviews"
        wanted = body["spec"]["resourceAttributes"]
        assert wanted["namespace"] == "training"
        resource = "/".join(filter(None, [wanted["resource"], wanted.get("subresource", "")]))
        return {"status": {"allowed": f"{wanted['verb']} {resource}" in self.allowed}}
