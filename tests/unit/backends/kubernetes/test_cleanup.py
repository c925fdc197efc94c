"""The end of a cluster: what is retained, and what a silent node still holds."""

import pytest

from tests.unit.backends.kubernetes.stored_api import CLUSTER, OBJECTS, RECORD, SILENT, StoredApi, made, pod
from tfdeploy.backends import controller_calls
from tfdeploy.backends.kubernetes import cleanup
from tfdeploy.backends.kubernetes.labels import object_name
from tfdeploy.backends.kubernetes.resources import claim
from tfdeploy.errors import BackendError


@pytest.mark.parametrize("retains", [True, False])
def test_only_the_checkpoints_are_retained_and_only_if_requested(server: StoredApi, retains: bool) -> None:
    made()
    OBJECTS.create(claim(CLUSTER, "train", "1Gi", "ReadWriteMany", ""))
    text = cleanup.remove_all(OBJECTS, 1.0, retain_checkpoints=retains)
    train = object_name(CLUSTER, "train")
    assert list(server.objects) == ([OBJECTS.path("PersistentVolumeClaim", train)] if retains else [])
    assert (f"kubectl --namespace training delete pvc {train}" in text) is retains


def test_a_pod_on_a_silent_node_is_not_waited_for_but_named(server: StoredApi, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    server.put(OBJECTS.path("Pod", "p"), pod("p", **SILENT))
    assert "worker-1 on node-2" in cleanup.remove_all(OBJECTS, 1.0, retain_checkpoints=False)
    server.item("Pod", "p")["status"] = {"phase": "Running"}
    monkeypatch.setattr(controller_calls, "is_cancelled", lambda: True)
    with pytest.raises(BackendError, match="the pods of worker-1 did not end"):
        cleanup.remove_all(OBJECTS, 0.0, retain_checkpoints=False)


def test_a_claim_that_a_silent_node_holds_is_named_with_the_node(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    made()
    server.put(OBJECTS.path("Pod", "p"), pod("p", **SILENT))
    server.held = {OBJECTS.path("PersistentVolumeClaim", RECORD)}
    monkeypatch.setattr(cleanup, "_SECONDS", 0.0)
    with pytest.raises(BackendError, match=f"Claim {RECORD} .*worker-1 on node-2.*kubectl delete node.*destroy` again"):
        cleanup.remove_all(OBJECTS, 1.0, retain_checkpoints=False)
