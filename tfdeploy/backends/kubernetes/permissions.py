"""What a user needs to be allowed in the namespace of a cluster, and what of it is missing.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/ and .../authorization/.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..parallel_calls import for_all
from .api import ApiServer

NEEDED_ROLE = "docs/kubernetes-role.yaml has the Role that you need."
_CALLS = 16
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NEVER_CHANGED = ("create", "delete", "get", "list")
_OBJECT = (*_NEVER_CHANGED, "patch")


class Permission(NamedTuple):
    """One verb for one resource."""

    verb: str
    resource: str
    """With a subresource after a slash."""
    group: str = ""
    """Empty for the core group."""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


_NEEDED = (
    ("", "namespaces", ("get",)),
    ("", "events", ("list",)),
    ("", "pods", ("list",)),
    ("", "pods/exec", ("create", "get")),
    ("", "pods/proxy", ("create", "get", "update")),
    ("", "configmaps", _NEVER_CHANGED),
    ("", "secrets", _OBJECT),
    ("", "services", _OBJECT),
    ("", "persistentvolumeclaims", _NEVER_CHANGED),
    ("apps", "statefulsets", _OBJECT),
    ("batch", "jobs", _OBJECT),
    ("networking.k8s.io", "networkpolicies", _OBJECT),
)
NEEDED = tuple(Permission(verb, resource, group) for group, resource, verbs in _NEEDED for verb in verbs)
"""All that tfdeploy does in the namespace of a cluster. docs/kubernetes-role.yaml has them, and what checks of a preview need."""

RUN_COMMANDS = tuple(item for item in NEEDED if item.resource == "pods/exec")
TRY_PODS = (Permission("create", "pods"),)
"""For pods of which the API server only says whether it would create them."""


def missing(api: ApiServer, permissions: Sequence[Permission] = NEEDED) -> tuple[Permission, ...]:
    """What of these the user is not allowed to do.

    Raises:
        ApiError, Unreachable: the server cannot be asked.
    """
    allowed = for_all(permissions, lambda item: _is_allowed(api, item), _CALLS)
    return tuple(item for item, is_allowed in zip(permissions, allowed, strict=True) if not is_allowed)


def refusal(api: ApiServer, permissions: Sequence[Permission]) -> str:
    """Which permissions the user does not have, in words."""
    return f"you may not {', '.join(map(str, permissions))} in {api.namespace}"


def _is_allowed(api: ApiServer, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {"namespace": api.namespace, "group": permission.group, "verb": permission.verb, "resource": resource}
    body = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {**attributes, **({"subresource": subresource} if subresource else {})}},
    }
    return bool(api.post(_REVIEWS, body)["status"]["allowed"])
