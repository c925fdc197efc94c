"""A Pulumi project whose cluster is in a namespace of a Kubernetes, driven as a user drives it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.docker.project import ContainerProject
from tests.integration.conftest import imported
from tests.waiting import until
from tfdeploy.backends.kubernetes.api import ApiServer
from tfdeploy.backends.kubernetes.backend import BACKEND
from tfdeploy.backends.kubernetes.cluster_objects import KINDS, ClusterObjects
from tfdeploy.errors import BackendError

STORAGE_CLASS = "folders"


class KubernetesProject(ContainerProject):
    """The arguments that a test gives are for any backend; what is Kubernetes' is added here."""

    backend_name = "kubernetes"
    modules = (*imported("kubernetes", "resources"), "kubernetes")

    def __init__(self, folder: Path, kubeconfig: Path, image: str) -> None:
        super().__init__(folder)
        self.image = image
        self.env["KUBECONFIG"] = str(kubeconfig)

    def write(self, arguments: str, *rest: str) -> None:
        """Write the Pulumi program and what its tasks run."""
        counter = self.folder / "counter"
        counter.chmod(0o777)
        container = (
            f"container={{'image': {self.image!r}, 'volumes': ['{counter}:{counter}'], 'retain_volumes': False}}"
        )
        group = f"kubernetes={{'storage_class': {STORAGE_CLASS!r}}}"
        super().write(f'backend="kubernetes", {container}, {group}, {arguments}', *rest)

    @property
    def objects(self) -> ClusterObjects:
        """What it has in its namespace."""
        return ClusterObjects(ApiServer(self.cluster["home"]), self.cluster)

    def known(self) -> str:
        """The tasks as Kubernetes has them."""
        with suppress(BackendError):
            return "\n".join(f"{name}: {task}" for name, task in self.objects.tasks().items())
        return "the API server does not respond"

    def left(self) -> dict[str, list[str]]:
        """What has the label of the project's clusters, by kind."""
        left: dict[str, Any] = {}
        for ref in self.refs():
            objects = ClusterObjects(ApiServer(ref["home"]), ref)
            for kind in KINDS:
                left.setdefault(kind, []).extend(item["metadata"]["name"] for item in objects.list(kind))
        return {kind: names for kind, names in left.items() if names}

    def assert_nothing_left(self) -> None:
        """Nothing in the namespace has the project's label."""
        until(lambda: not self.left(), "nothing is left", seen=lambda: str(self.left()))

    def clean(self) -> None:
        """Remove what the test left, without Pulumi."""
        for ref in self.refs():
            with suppress(BackendError):
                BACKEND.runner.delete_all(ref, "", {"volumes": False, "record": False})
