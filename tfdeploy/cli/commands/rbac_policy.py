"""`tfdeploy rbac-policy`: the permissions that a cluster on Kubernetes needs."""

from typing import Annotated

import yaml

from ...backends.load import load
from ..common import print_result
from ..option import Option
from ..pulumi import settings
from ..select import ClusterQuery, current_stack

_BACKEND = "kubernetes"


def rbac_policy(
    query: ClusterQuery,
    namespace: Annotated[str, Option(help="Namespace. Default: the stack's.", show_default=False)] = "",
    every: Annotated[
        bool, Option("--all", help="With what checks of a preview and `top` read.", show_default=False)
    ] = False,
) -> None:
    """Print the least Role for a cluster on Kubernetes, as YAML.

    With a binding to it, a user can run Pulumi and all commands of `tfdeploy` for the cluster.
    `--all` adds what checks of a preview read, in a ClusterRole where that is in no namespace.
    """
    load(_BACKEND)
    from ...backends.kubernetes.permissions import CHECKS, CLUSTER_CHECKS, RULES, role

    file, stack = current_stack(query)
    chosen = namespace or settings(file, stack).get("tfdeploy:kubernetes.namespace") or "default"
    roles = [role(chosen, (*RULES, *CHECKS) if every else RULES)]
    roles += [role("", CLUSTER_CHECKS)] if every else []
    print_result(yaml.safe_dump_all(roles, sort_keys=False).rstrip())
