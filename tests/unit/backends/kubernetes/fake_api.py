"""An API server that only has what a test gives it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import inventory
from tfdeploy.backends.kubernetes import planner
from tfdeploy.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError, ApiServer
from tfdeploy.backends.kubernetes.planner import KubernetesInventory, KubernetesPlanner
from tfdeploy.plan.plan import make_plan
from tfdeploy.plan.retained_data import lines
from tfdeploy.spec.cluster import cluster_spec

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class FakeApi(ApiServer):
    """Objects by path, and what the user is not allowed to do."""

    def __init__(self, objects: Mapping[str, Any], denied: Collection[str] = (), refused: str = "") -> None:
        super().__init__("training@https://kube.example.com")
        self.objects = {
            "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.4"},
            "/api/v1/namespaces/training": {"metadata": {"name": "training"}},
            **objects,
        }
        self.denied = denied
        """`VERB RESOURCE` of what is not allowed."""
        self.refused = refused
        """Why no pod would be created."""
        self.tried: list[Any] = []

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
        if path == "/api/v1/namespaces/training/pods?dryRun=All":
            self.tried.append(body)
            if self.refused:
                raise ApiError(FORBIDDEN, "Forbidden", self.refused)
            return body
        assert path == _REVIEWS
        wanted = body["spec"]["resourceAttributes"]
        assert wanted["namespace"] == "training"
        resource = "/".join(filter(None, [wanted["resource"], wanted.get("subresource", "")]))
        return {"status": {"allowed": f"{wanted['verb']} {resource}" not in self.denied}}


def previewed(
    api: ApiServer, existing: Collection[str] = (), has_storage: bool = True, **args: Any
) -> tuple[Sequence[str], Sequence[str]]:
    """The warnings of a preview of two workers, and what it says of `pulumi destroy`; `existing` are the hostnames of tasks."""
    made = cluster_spec("mnist", {"command": ["python", "-c", "0"], "workers": 2, "backend": "kubernetes", **args})
    places = replace(inventory(made), machines=(), places_tasks=True)
    jobs: Any = {hostname: {"metadata": {}} for hostname in existing}
    known = KubernetesInventory(**vars(places), jobs=jobs, has_storage=has_storage)
    plan, cluster = make_plan(made, places, ""), cluster_ref("kubernetes", f"{api.namespace}@{api.server}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "ApiServer", lambda _: api)
        warnings = KubernetesPlanner().validate(cluster, made, plan, known, ())
    return warnings, lines(KubernetesPlanner().render(cluster, made, plan, known).retained)


def checked(api: ApiServer, existing: Collection[str] = (), **args: Any) -> Sequence[str]:
    """The warnings of a preview where no pod has the only checkpoints."""
    return previewed(api, existing, train_dir="gs://runs", **args)[0]
