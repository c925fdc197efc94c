"""The roles of docs/kubernetes-role.yaml are what a life on a real API server needs, by the log of its calls, and nothing else."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.kube.cluster import Cluster
from tests.kubernetes.project import KubernetesProject
from tests.kubernetes.rights import documented
from tests.kubernetes.test_failures import STEPS, trains_on
from tests.verbs import Verbs

pytestmark = pytest.mark.full

JOB = (
    'command=["python", "train.py"], code="code", workers={workers}, wait="0", secrets={{"KEY": "{secret}"}}, '
    'env={{"COUNTER": __import__("os").environ["COUNTER"]}}'
)
CHECKED = (
    '"service_account": "default", "priority_class": "system-node-critical"',
    '"image_pull_secrets": ["none"]',
    '"queue": "none"',
    '"storage_class": ""',
)
"""What a preview looks for; the secret and the queue do not exist."""

ELSEWHERE = {("", "pods/exec", "create"), ("batch", "jobs", "patch")}
"""API servers from 1.35 ask for the first where a command is run; an update that was interrupted leaves Jobs, which the next adopts."""

SUGGESTED = {("kueue.x-k8s.io", "localqueues", "list")}
"""What a preview would suggest in place of a queue that does not exist; it does without."""


def rights(roles: tuple[dict[str, Any], ...]) -> Iterator[tuple[str, str, str]]:
    """Each verb of the roles, with its group and resource."""
    for rule in (rule for role in roles for rule in role["rules"]):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from ((group, resource, verb) for verb in rule["verbs"])


def right(call: Mapping[str, Any]) -> tuple[str, str, str]:
    """The right that a call needs."""
    about = call.get("objectRef", {})
    names = filter(None, (about.get("resource"), about.get("subresource")))
    return about.get("apiGroup", ""), "/".join(names), call["verb"]


def is_forbidden(call: Mapping[str, Any]) -> bool:
    """Whether the user may not do that."""
    return bool(call["annotations"].get("authorization.k8s.io/decision") == "forbid")


def test_a_life_needs_the_documented_roles_and_nothing_else(kube: Cluster, project: KubernetesProject) -> None:
    verbs = Verbs(project.program, project.env)
    for checked in CHECKED:
        project.write(JOB.format(workers=1, secret="a-value") + f", kubernetes={{{checked}}}", STEPS)
        project.call("preview", "--stack", project.stack)
    for workers, secret in ((2, "a-value"), (2, "another"), (1, "another")):
        project.write(JOB.format(workers=workers, secret=secret), STEPS)
        project.up()
        project.until_running("worker-0")
        trains_on(project, "worker-0")
    project.up("--refresh")
    for words in (["exec", "worker-0", "--", "true"], ["logs"], ["top"], ["restart", "--yes", "worker-0"], ["ls"]):
        verbs.call(*words)
    project.destroy()
    calls = [call for call in kube.calls(project.folder.parent.name) if "objectRef" in call]
    assert {right(call) for call in calls if is_forbidden(call)} == SUGGESTED
    assert {*rights(documented())} - {right(call) for call in calls} == ELSEWHERE
