"""Where pods stand: apart, together or evenly, and on which nodes."""

from typing import Any

import pytest

from tests.unit.cases import spec
from tfdeploy.backends.kubernetes.affinity import placement

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
