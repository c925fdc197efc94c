"""A project of its own for each test, in the cluster of all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.images import PYTHON
from tests.kube.cluster import Cluster
from tests.kubernetes.project import KubernetesProject
from tests.kubernetes.rights import with_roles


@pytest.fixture
def project(kube: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesProject]:
    """The project, with its stack. Its user has the roles of docs/kubernetes-role.yaml; the test itself is an administrator."""
    kubeconfig = with_roles(kube, tmp_path.name)
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "project/state"))
    made = KubernetesProject(tmp_path / "project", kubeconfig, PYTHON)
    made.write('command=["python", "train.py"], code="code", workers=1')
    made.init()
    yield made
    made.clean()
