"""Marathon's constraints as what a scheduler of Kubernetes keeps, or the reason why it cannot."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.backends.kubernetes.affinity import placement
from tfdeploy.errors import SpecError

PODS = {"tfdeploy/cluster-id": "k3v9x2abcd", "tfdeploy/job": "worker"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placed(*constraints: str) -> dict[str, Any]:
    made = spec(workers=2, container={"placement": list(constraints)})
    return placement(made, made.jobs[0], PODS)


def node_conditions(*constraints: str) -> Any:
    (term,) = placed(*constraints)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return term["matchExpressions"]


def test_without_constraints_the_scheduler_decides() -> None:
    assert placed() == {}


@pytest.mark.parametrize("text", ["hostname:UNIQUE", "hostname:MAX_PER:1"])
def test_one_task_a_node(text: str) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": PODS}}
    assert placed(text) == {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def test_all_tasks_in_one_zone_whichever_it_is() -> None:
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": PODS}}
    assert placed("topology.kubernetes.io/zone:CLUSTER") == {"affinity": {"podAffinity": {REQUIRED: [term]}}}


def test_an_even_spread() -> None:
    spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": PODS}}
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


def test_all_conditions_must_hold() -> None:
    assert [item["key"] for item in node_conditions("zone:IS:a", "pool:IS:b")] == ["zone", "pool"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("address:UNIQUE", "no label with their address"),
        ("hostname:MAX_PER:2", "differ in tasks"),
        ("hostname:LIKE:node-[12]", "not with regular expressions"),
        ("hostname:LIKE:a.b", "not with regular expressions"),
        ("hostname:UNLIKE:(a)|b", "not with regular expressions"),
    ],
)
def test_what_kubernetes_cannot_keep_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(SpecError) as error:
        placed(text)
    assert error.value.where == "mnist: container.placement"
    assert reason in error.value.wrong
