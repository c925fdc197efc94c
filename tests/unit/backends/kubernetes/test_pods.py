"""The objects of a task: two programs of one task never run, nothing is privileged, and secrets are not in it; where they stand;
and the state of a task from its Job and its pods, in Kubernetes' own words."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.unit.cases import plan, spec
from tests.unit.props import run_props, task_props
from tfdeploy.backends.base import RunProps, TaskProps
from tfdeploy.backends.kubernetes.affinity import placement
from tfdeploy.backends.kubernetes.cluster_objects import definition
from tfdeploy.backends.kubernetes.drift import shared_objects
from tfdeploy.backends.kubernetes.planner import RESTARTS, pod_changes
from tfdeploy.backends.kubernetes.pods import PodMount, PodSettings, controller_set, task_job
from tfdeploy.backends.kubernetes.resources import secrets_suffix
from tfdeploy.backends.kubernetes.states import engine_task, is_node_silent

SETTINGS = PodSettings("an-image", "1000:1000", (PodMount("/data", "/data", True), PodMount("claim", "/mnt")), 1 << 20)
DEPENDENCIES = {"agent": "the-agent", "token": "the-token", "secrets": "the-secrets"}


def props(**changes: Any) -> TaskProps:
    """The props of a task."""
    own = {"container": SETTINGS.to_dict(), "dependencies": DEPENDENCIES, **changes}
    return cast(TaskProps, {**task_props(), "limits": {"memory": 1 << 30, "cpus": 0.5}, **own})


def controller_props() -> RunProps:
    """The props of a run."""
    settings = PodSettings("an-image", record="record").to_dict()
    return cast(RunProps, {**run_props(), "container": settings, "dependencies": DEPENDENCIES})


def test_a_second_pod_of_a_task_needs_the_end_of_the_first() -> None:
    spec = task_job(props())["spec"]
    assert (spec["podReplacementPolicy"], spec["backoffLimit"]) == ("Failed", 2**31 - 1)
    assert controller_set(controller_props())["spec"]["replicas"] == 1


def test_no_pod_has_privileges_or_an_account() -> None:
    for item in (task_job(props()), controller_set(controller_props())):
        pod = item["spec"]["template"]["spec"]
        assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
        assert pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
    root, other = (
        controller_set({**controller_props(), "container": PodSettings("an-image", user).to_dict()})["spec"]["template"]
        for user in ("", "1000")
    )
    assert root["spec"]["containers"][0]["securityContext"]["capabilities"]["add"] == ["DAC_OVERRIDE"]
    assert other["spec"]["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]},
    }
    assert other["spec"]["securityContext"]["fsGroup"] == 1000


def test_no_secret_is_in_an_object_but_in_secrets() -> None:
    task = props(token="canary-token")
    assert "canary" not in json.dumps(task_job(task))
    kinds = [item["kind"] for item in shared_objects(task["cluster"], "canary-token") if "canary" in json.dumps(item)]
    assert kinds == []
    assert "canary" not in secrets_suffix({"A": "canary"}, "token")
    assert secrets_suffix({"A": "1"}, "token") != secrets_suffix({"A": "2"}, "token")


def test_the_limits_of_a_task_are_those_of_its_pod_and_of_its_launcher() -> None:
    limits = {"memory": 1 << 30, "cpus": 0.5, "gpus": 1, "nice": 5}
    (container,) = task_job(props(limits=limits))["spec"]["template"]["spec"]["containers"]
    sizes = {"memory": str(1 << 30), "cpu": "500m", "nvidia.com/gpu": "1"}
    assert container["resources"] == {"limits": sizes, "requests": sizes}
    assert json.loads(container["command"][-1])["limits"] == limits


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({}, "nice none -> 5"),
        ({"image": "mine:2"}, "image an-image -> mine:2"),
        ({"user": ""}, "user 1000:1000 -> none"),
        ({"mounts": (PodMount("", "/mnt"),)}, "volumes /data:/data:ro claim:/mnt -> emptyDir:/mnt"),
        ({"shm_size": 1 << 30}, "shm_size 1 MiB -> 1 GiB"),
        ({"labels": {"team": "a"}}, 'labels none -> {"team": "a"}'),
        ({"pod": {"nodeSelector": {"zone": "a"}}}, 'nodeSelector none -> {"zone": "a"}'),
        ({"pod": {"tolerations": [{"key": "x"}]}}, 'tolerations none -> [{"key": "x"}]'),
    ],
)
def test_a_preview_shows_all_that_replaces_a_pod(change: dict[str, Any], shown: str) -> None:
    limits = {"memory": "1GiB", "cpus": 0.5}
    (task,) = plan(workers=1, jobs={"worker": limits}).tasks
    existing = {"worker-0": task_job(props(hostname="worker-0"))}
    assert pod_changes([task], {"worker-0": SETTINGS}, existing) == ()
    if not change:
        (task,) = plan(workers=1, jobs={"worker": {**limits, "nice": 5}}).tasks
    (changed,) = pod_changes([task], {"worker-0": replace(SETTINGS, **change)}, existing)
    assert str(changed) == f"~ worker-0  {shown}  ({RESTARTS})"


def test_what_is_created_again_is_what_was_created() -> None:
    job = task_job(props())
    stored = json.loads(json.dumps(job))
    stored["metadata"]["labels"]["job-name"] = stored["spec"]["template"]["metadata"]["labels"]["job-name"] = "x"
    stored["metadata"] |= {"uid": "1", "resourceVersion": "2"}
    stored["spec"] |= {"selector": {"matchLabels": {}}, "completions": 1}
    assert definition(stored) == job


JOB: dict[str, Any] = {"status": {}}


def pod(phase: str, created: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    """A pod; `status` and `metadata` are added to its own."""
    status = {"phase": phase, **more.get("status", {})}
    metadata = {"name": f"p-{created[-3:-1]}", "creationTimestamp": created, **more.get("metadata", {})}
    return {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    """The status of a pod whose container waits."""
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


PODS = {"tfdeploy/cluster-id": "k3v9x2abcd", "tfdeploy/job": "worker"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placed(*constraints: str) -> dict[str, Any]:
    made = spec(workers=2, container={"placement": list(constraints)})
    return placement(made, made.jobs[0], PODS)


def node_conditions(*constraints: str) -> Any:
    (term,) = placed(*constraints)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return term["matchExpressions"]


def test_pods_stand_apart_together_or_evenly_and_without_constraints_as_the_scheduler_decides() -> None:
    assert placed() == {}
    pods = {"labelSelector": {"matchLabels": PODS}}
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname", **pods}]}}
    assert placed("hostname:UNIQUE") == placed("hostname:MAX_PER:1") == {"affinity": apart}
    together = {"podAffinity": {REQUIRED: [{"topologyKey": "topology.kubernetes.io/zone", **pods}]}}
    assert placed("topology.kubernetes.io/zone:CLUSTER") == {"affinity": together}, "in one zone, whichever it is"
    spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **pods}
    assert placed("zone:GROUP_BY:3", "hostname:GROUP_BY") == {
        "topologySpreadConstraints": [
            {**spread, "topologyKey": "zone", "minDomains": 3},
            {**spread, "topologyKey": "kubernetes.io/hostname"},
        ]
    }


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("zone:CLUSTER:a", {"key": "zone", "operator": "In", "values": ["a"]}),
        ("hostname:IS:node-1", {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}),
        ("zone:LIKE:us-west-2a|us-west-2b", {"key": "zone", "operator": "In", "values": ["us-west-2a", "us-west-2b"]}),
        ("zone:UNLIKE:(a|b)", {"key": "zone", "operator": "NotIn", "values": ["a", "b"]}),
        (r"host:LIKE:a\.b", {"key": "host", "operator": "In", "values": ["a.b"]}),
        ("gpu:LIKE:.*", {"key": "gpu", "operator": "Exists"}),
        ("gpu:UNLIKE:.+", {"key": "gpu", "operator": "DoesNotExist"}),
    ],
)
def test_what_a_node_must_have(text: str, condition: dict[str, Any]) -> None:
    assert node_conditions(text) == [condition]
    assert node_conditions(text, "pool:IS:b")[0] == condition, "all conditions must hold"
    assert node_conditions(text, "pool:IS:b")[1]["key"] == "pool"
