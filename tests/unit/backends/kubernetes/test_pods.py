"""The objects of a task: two programs of one task never run, nothing is privileged, and secrets are not in it."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.unit.cases import plan
from tests.unit.props import run_props, task_props
from tfdeploy.backends.base import RunProps, TaskProps
from tfdeploy.backends.kubernetes.cluster_objects import definition
from tfdeploy.backends.kubernetes.drift import shared_objects
from tfdeploy.backends.kubernetes.planner import RESTARTS, pod_changes
from tfdeploy.backends.kubernetes.pods import PodMount, PodSettings, controller_set, task_job
from tfdeploy.backends.kubernetes.resources import secrets_suffix

SETTINGS = PodSettings("an-image", "1000:1000", (PodMount("/data", "/data", True), PodMount("claim", "/mnt")), 1 << 20)
DEPENDENCIES = {"agent": "the-agent", "token": "the-token", "secrets": "the-secrets"}


def props(**changes: Any) -> TaskProps:
    own = {"container": SETTINGS.to_dict(), "dependencies": DEPENDENCIES, **changes}
    return cast(TaskProps, {**task_props(), "limits": {"memory": 1 << 30, "cpus": 0.5}, **own})


def controller_props() -> RunProps:
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
