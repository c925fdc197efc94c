"""Projects whose run moves between this computer and containers."""

from tests.docker.project import DockerProject
from tests.integration.conftest import Project
from tests.integration.moving import Moving
from tests.kubernetes.project import STORAGE_CLASS, KubernetesProject
from tfdeploy.backends.base import ClusterRef
from tfdeploy.backends.kubernetes.namespace import chosen_place


class MovingDockerProject(Moving, DockerProject):
    """A project whose backend is in the configuration, with the image of the tests."""

    def write(self, arguments: str, *rest: str) -> None:
        container = f"container={{'image': {self.image!r}, 'retain_volumes': False}}, docker={{'cleanup_image': {self.image!r}}}"
        Project.write(self, f"{container}, {arguments}", *rest)

    def clean(self) -> None:
        Project.clean(self)
        DockerProject.clean(self)


class MovingKubernetesProject(Moving, KubernetesProject):
    """The same for Kubernetes."""

    def write(self, arguments: str, *rest: str) -> None:
        container = f"container={{'image': {self.image!r}, 'retain_volumes': False}}"
        group = f"kubernetes={{'storage_class': {STORAGE_CLASS!r}}}"
        Project.write(self, f"{container}, {group}, {arguments}", *rest)

    def refs(self) -> list[ClusterRef]:
        """Its clusters at the API server, wherever the run is."""
        home = chosen_place("", "default").home
        return [{**ref, "backend": "kubernetes", "home": home} for ref in super().refs()]

    def clean(self) -> None:
        Project.clean(self)
        KubernetesProject.clean(self)
