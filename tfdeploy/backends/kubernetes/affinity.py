"""Marathon's placement constraints as affinity and topology spread of Kubernetes. Pure.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and .../topology-spread-constraints/.
"""

import re
from collections.abc import Mapping
from typing import Any

from ...errors import SpecError
from ...plan.constraints import Constraint, parse
from ...spec.cluster import ClusterSpec
from ...spec.jobs import JobSpec

_HOSTNAME = "kubernetes.io/hostname"
_LITERALS = re.compile(r"\(?([A-Za-z0-9_-]|\\\.)+(\|([A-Za-z0-9_-]|\\\.)+)*\)?")
_ANYTHING = (".*", ".+")
_WHEN_SCHEDULED = "requiredDuringSchedulingIgnoredDuringExecution"


def placement(spec: ClusterSpec, job: JobSpec, selector: Mapping[str, str]) -> dict[str, Any]:
    """The members of a pod's spec for the constraints of its job; `selector` has the labels of the job's pods.

    Raises:
        SpecError: Kubernetes cannot keep a constraint.
    """
    pod: dict[str, Any] = {"matchLabels": dict(selector)}
    conditions: list[dict[str, Any]] = []
    terms: dict[str, list[dict[str, Any]]] = {"podAffinity": [], "podAntiAffinity": []}
    spread = []
    for text in job.container.placement:
        constraint = parse(f"{spec.name}: container.placement", text)
        key = _node_label(spec, constraint)
        if kind := _pod_term(constraint):
            terms[kind].append({"topologyKey": key, "labelSelector": pod})
        elif constraint.operator == "GROUP_BY":
            spread.append(_spread(constraint, key, pod))
        else:
            conditions.append(_node_condition(spec, constraint, key))
    affinity: dict[str, Any] = {kind: {_WHEN_SCHEDULED: items} for kind, items in terms.items() if items}
    if conditions:
        affinity["nodeAffinity"] = {_WHEN_SCHEDULED: {"nodeSelectorTerms": [{"matchExpressions": conditions}]}}
    return {
        **({"affinity": affinity} if affinity else {}),
        **({"topologySpreadConstraints": spread} if spread else {}),
    }


def _node_label(spec: ClusterSpec, constraint: Constraint) -> str:
    if constraint.field == "address":
        raise _refused(spec, constraint, "nodes have no label with their address", 'Use the field "hostname".')
    return _HOSTNAME if constraint.field == "hostname" else constraint.field


def _pod_term(constraint: Constraint) -> str:
    """Where a constraint is about the other pods of the job."""
    if constraint.operator == "UNIQUE" or (constraint.operator == "MAX_PER" and constraint.parameter == "1"):
        return "podAntiAffinity"
    return "podAffinity" if constraint.operator == "CLUSTER" and not constraint.parameter else ""


def _spread(constraint: Constraint, key: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    least = {"minDomains": int(constraint.parameter)} if constraint.parameter else {}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": pod, **least}


def _node_condition(spec: ClusterSpec, constraint: Constraint, key: str) -> dict[str, Any]:
    operator, parameter = constraint.operator, constraint.parameter
    if operator == "MAX_PER":
        reason = "its scheduler limits how much nodes differ in tasks, not how many each has"
        raise _refused(spec, constraint, reason, f"Use {constraint.field}:UNIQUE or {constraint.field}:GROUP_BY.")
    if operator in ("CLUSTER", "IS"):
        return {"key": key, "operator": "In", "values": [parameter]}
    if parameter in _ANYTHING:
        return {"key": key, "operator": "Exists" if operator == "LIKE" else "DoesNotExist"}
    if not _LITERALS.fullmatch(parameter) or parameter.startswith("(") != parameter.endswith(")"):
        reason = "it compares labels with values, not with regular expressions"
        raise _refused(spec, constraint, reason, 'List the values: "zone:LIKE:us-west-2a|us-west-2b".')
    values = parameter.strip("()").replace("\\", "").split("|")
    return {"key": key, "operator": "In" if operator == "LIKE" else "NotIn", "values": values}


def _refused(spec: ClusterSpec, constraint: Constraint, reason: str, remedy: str) -> SpecError:
    where = f"{spec.name}: container.placement"
    return SpecError(where, f"Kubernetes cannot keep {str(constraint)!r}: {reason}", remedy)
