"""The state of a task from its Job and its pods, in Kubernetes' own words."""

from typing import Any

import pytest

from tfdeploy.backends.kubernetes.states import engine_task, is_node_silent

JOB: dict[str, Any] = {"status": {}}


def pod(phase: str, created: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    """A pod; `status` and `metadata` are added to its own."""
    status = {"phase": phase, **more.get("status", {})}
    metadata = {"name": f"p-{created[-3:-1]}", "creationTimestamp": created, **more.get("metadata", {})}
    return {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}, **more}]}


def pending(reason: str, message: str = "", created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return pod("Pending", created, status=waiting(reason, message))


UNSCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes: Insufficient cpu."}]}
KILLED = waiting("CrashLoopBackOff", lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}})
PREEMPTED = {
    "conditions": [{"type": "DisruptionTarget", "reason": "PreemptionByScheduler", "message": "for another pod"}]
}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], (True, "scheduled", "")),
        ([pod("Pending", status=UNSCHEDULED)], (True, "scheduled", "0/2 nodes: Insufficient cpu.")),
        ([pending("ContainerCreating")], (True, "starting", "")),
        ([pending("ImagePullBackOff", "Back-off")], (True, "pulling", "ImagePullBackOff: Back-off")),
        ([pending("CreateContainerConfigError", "no s")], (True, "starting", "CreateContainerConfigError: no s")),
        ([pod("Running")], (True, "running", "")),
        ([pod("Running", status=KILLED)], (True, "starting", "OOMKilled; CrashLoopBackOff")),
        ([pod("Succeeded")], (False, "complete", "")),
        ([pod("Failed", status={"reason": "Evicted", "message": "full"})], (True, "scheduled", "Evicted: full")),
        (
            [pod("Failed", status=PREEMPTED), pending("ContainerCreating", created="2026-01-01T00:00:09Z")],
            (True, "starting", "PreemptionByScheduler: for another pod"),
        ),
    ],
)
def test_a_state_has_the_words_of_kubernetes(pods: list[Any], expected: tuple[bool, str, str]) -> None:
    task = engine_task(JOB, pods)
    assert (task.alive, task.state, task.reason) == expected


def test_a_pod_on_a_silent_node_may_still_run_and_a_complete_job_without_its_pod_has_ended() -> None:
    lost = {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [{"state": {"running": {}}}]}
    leaving = pod("Running", status=lost, metadata={"deletionTimestamp": "2026-01-01T00:01:00Z"})
    assert is_node_silent(leaving)
    task = engine_task(JOB, [leaving])
    assert (task.alive, task.state, task.reason) == (True, "scheduled", "the node node-1 does not respond")
    assert not engine_task({"status": {"succeeded": 1}}, []).alive
