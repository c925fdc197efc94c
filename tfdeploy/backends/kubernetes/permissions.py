"""The permissions that a user needs: which are missing, and the Role that grants them.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/ and .../authorization/.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..parallel_calls import for_all
from .api import ApiServer

NEEDED_ROLE = "docs/kubernetes-role.yaml has the Role that you need."
_ANY = "*"
_CALLS = 16
_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_NEVER_CHANGED = ("create", "delete", "get", "list")
_OBJECT = (*_NEVER_CHANGED, "patch")


@dataclass(frozen=True)
class Rule:
    """Verbs for one resource."""

    group: str
    """Empty for the core group."""
    resource: str
    """With a subresource after a slash."""
    verbs: tuple[str, ...]


RULES = (
    Rule("", "namespaces", ("get",)),
    Rule("", "events", ("list",)),
    Rule("", "pods", ("list",)),
    Rule("", "pods/exec", ("create", "get")),
    Rule("", "pods/proxy", ("create", "get", "update")),
    Rule("", "configmaps", _NEVER_CHANGED),
    Rule("", "secrets", _OBJECT),
    Rule("", "services", _OBJECT),
    Rule("", "persistentvolumeclaims", _NEVER_CHANGED),
    Rule("apps", "statefulsets", _OBJECT),
    Rule("batch", "jobs", _OBJECT),
    Rule("networking.k8s.io", "networkpolicies", _OBJECT),
)
"""All that tfdeploy does in the namespace of a cluster. docs/kubernetes-role.yaml has them, and what checks of a preview read."""


def missing(api: ApiServer) -> tuple[Rule, ...]:
    """What of `RULES` the user is not allowed to do. Where the server cannot list all permissions, it is asked for each verb.

    Raises:
        ApiError, Unreachable: the server cannot be asked.
    """
    review = {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1"}
    body = {**review, "spec": {"namespace": api.namespace}}
    granted = api.post(f"{_AUTHORIZATION}/selfsubjectrulesreviews", body)["status"].get("resourceRules") or ()
    unclear = [
        Rule(rule.group, rule.resource, (verb,))
        for rule in RULES
        for verb in rule.verbs
        if not any(_grants(item, rule, verb) for item in granted)
    ]
    allowed = for_all(unclear, lambda rule: _is_allowed(api, rule), _CALLS)
    return _joined([rule for rule, is_allowed in zip(unclear, allowed, strict=True) if not is_allowed])


def verbs_of(rules: Sequence[Rule]) -> str:
    """The rules in one line: `create pods/exec, list jobs`."""
    return ", ".join(f"{verb} {rule.resource}" for rule in rules for verb in rule.verbs)


def role(namespace: str, rules: Sequence[Rule]) -> dict[str, Any]:
    """A Role with these rules. Resources with the same verbs share a rule."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for rule in rules:
        groups.setdefault((rule.group, rule.verbs), []).append(rule.resource)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "tfdeploy", "namespace": namespace},
        "rules": [
            {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
            for (group, verbs), resources in groups.items()
        ],
    }


def _joined(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """One rule for each resource."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        verbs.setdefault((rule.group, rule.resource), []).extend(rule.verbs)
    return tuple(Rule(group, resource, tuple(names)) for (group, resource), names in verbs.items())


def _grants(granted: Mapping[str, Any], rule: Rule, verb: str) -> bool:
    """Whether an entry of the server's list allows the verb; one for single names does not."""
    wanted = (("apiGroups", rule.group), ("resources", rule.resource), ("verbs", verb))
    has_all = all({_ANY, value} & {*(granted.get(key) or ())} for key, value in wanted)
    return has_all and not granted.get("resourceNames")


def _is_allowed(api: ApiServer, rule: Rule) -> bool:
    resource, _, subresource = rule.resource.partition("/")
    attributes = {"namespace": api.namespace, "group": rule.group, "resource": resource, "verb": rule.verbs[0]}
    body = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {**attributes, **({"subresource": subresource} if subresource else {})}},
    }
    return bool(api.post(f"{_AUTHORIZATION}/selfsubjectaccessreviews", body)["status"]["allowed"])
