"""What a user learns who may not do everything in a namespace, or whose cluster lacks an object."""

import pytest

from tests.unit.backends.kubernetes.stored_api import CLUSTER, HOME, OBJECTS, RUNNER, WORKER, StoredApi, made
from tfdeploy.agent.record.record import ViewRequest
from tfdeploy.backends.kubernetes import discover, task_access
from tfdeploy.backends.kubernetes.controller_client import _token
from tfdeploy.backends.kubernetes.discover import discover_clusters
from tfdeploy.backends.kubernetes.task_access import KubernetesAccess
from tfdeploy.errors import BackendError, Forbidden

ACCESS = KubernetesAccess(RUNNER)


def test_who_may_only_look_sees_the_cluster_and_learns_what_not(
    server: StoredApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    made()
    _token.cache_clear()
    server.forbidden = {"secrets"}
    (found,) = discover_clusters(HOME)
    assert (found.cluster["id"], found.cluster["name"], "secret" in found.has) == (CLUSTER["id"], "mnist", False)
    observed = RUNNER.observe(CLUSTER, "", ViewRequest(), is_preview=True)
    assert observed.engine
    assert observed.engine["worker-1"].alive
    (problem,) = observed.problems
    assert "cannot be called" in problem
    assert "secrets" in problem
    with pytest.raises(Forbidden, match=r"secrets/\S+ is forbidden\. docs/kubernetes-role.yaml"):
        ACCESS.execute(CLUSTER, "worker-1", ["true"])
    monkeypatch.setattr(discover, "KINDS", {"Secret": "/api/v1"})
    with pytest.raises(Forbidden, match="you may not list"):
        discover_clusters(HOME)


def test_no_port_is_forwarded_without_the_right_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_access, "missing", lambda _, permissions: permissions)
    with pytest.raises(Forbidden, match="kubernetes-role"):
        ACCESS.relay(CLUSTER, "worker-1.mnist", 2222)
    monkeypatch.setattr(task_access, "missing", lambda *_: ())
    ACCESS.relay(CLUSTER, "worker-1.mnist", 2222)


def test_a_task_that_could_not_start_again_is_not_restarted(server: StoredApi) -> None:
    made()
    ACCESS.refuse_restart(CLUSTER, "worker-1")
    server.item("Job", WORKER)["spec"]["suspend"] = True
    ACCESS.refuse_restart(CLUSTER, "worker-1")
    OBJECTS.delete("Secret", WORKER)
    with pytest.raises(BackendError, match=f"the Secret {WORKER} is gone. `pulumi up --refresh`"):
        ACCESS.refuse_restart(CLUSTER, "worker-1")
