"""A namespace that enforces Pod Security `restricted` takes tasks and controller of a cluster whose user is not root."""

import pytest

from tests.engine.images import PYTHON
from tests.integration.conftest import Project
from tests.kube.cluster import Cluster
from tests.kubernetes.project import STORAGE_CLASS, KubernetesProject
from tests.kubernetes.rights import with_roles
from tests.waiting import until
from tfdeploy.agent.record.output_lines import STDOUT
from tfdeploy.backends.record_copy import RecordCopy

pytestmark = pytest.mark.full

NAMESPACE = "restricted"
ARGUMENTS = (
    'backend="kubernetes", command=["python", "train.py"], code="code", workers=1, '
    f'container={{"image": {PYTHON!r}, "user": "1000:1000", "retain_volumes": False}}, '
    f'kubernetes={{"namespace": {NAMESPACE!r}, "storage_class": {STORAGE_CLASS!r}}}'
)
SCRIPT = """\
import os, pathlib
pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], "model").write_text("trained")
print("user", os.getuid(), os.getgid(), flush=True)
"""


def test_a_run_in_a_namespace_without_root(kube: Cluster, project: KubernetesProject) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{NAMESPACE}"
    kube.api.apply(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    with_roles(kube, project.folder.parent.name, NAMESPACE)
    Project.write(project, ARGUMENTS, SCRIPT)
    project.up()
    until(lambda: project.job().result, "it has trained", seen=lambda: str(project.objects.tasks()))
    run = project.job()
    log = RecordCopy(project.cluster).record.log(run.spec.id, "worker-0")
    assert run.result
    assert run.result.state == "succeeded"
    assert log.printed(STDOUT) == b"user 1000 1000\n"
    project.destroy()
    kube.api.delete(path)
