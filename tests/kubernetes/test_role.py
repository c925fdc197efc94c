"""The roles of docs/kubernetes-role.yaml are what a life on a real API server needs, by the log of its calls, and nothing else.

In it, `tfdeploy cp` copies files of a pod, in whose image there need be no `tar`.
"""

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

MAKES = "mkdir out; head -c 3000000 /dev/urandom > out/big; ln -s /etc/passwd out/far; cat out/big"

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


def files_are_copied(verbs: Verbs) -> None:
    """While the program runs."""
    _, content, _ = verbs.call("exec", "worker-0", "--", "sh", "-c", MAKES)
    assert len(content) == 3_000_000
    assert verbs.call("cp", "worker-0:out/big", "-") == (0, content, "")
    code, _, beside = verbs.call("cp", "worker-0:out", ".")
    assert (code, beside) == (0, "far: skipped, a link to /etc/passwd, outside of the folder.\n")
    assert [path.name for path in (verbs.folder / "out").iterdir()] == ["big"]
    assert (verbs.folder / "out" / "big").read_bytes() == content
    assert verbs.call("cp", "worker-0:train_dir/none", ".")[0] == 3


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
    files_are_copied(verbs)
    for words in (["logs"], ["top"], ["restart", "--yes", "worker-0"], ["ls"]):
        verbs.call(*words)
    project.destroy()
    calls = [call for call in kube.calls(project.folder.parent.name) if "objectRef" in call]
    assert {right(call) for call in calls if is_forbidden(call)} == SUGGESTED
    assert {*rights(documented())} - {right(call) for call in calls} == ELSEWHERE
