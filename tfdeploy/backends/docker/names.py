"""What a cluster's things on an engine are called, and the labels by which they are found again. Pure.

A service's name has at most 63 letters, digits, `-` and `_`: swarmkit, `manager/controlapi/common.go`.
"""

import hashlib
import re
from collections.abc import Mapping

from ..base import Cluster

PREFIX = "tfdeploy."
HOSTNAME, SPEC, MACHINE, PORT = f"{PREFIX}hostname", f"{PREFIX}spec", f"{PREFIX}machine", f"{PREFIX}port"
"""Labels of a service: whose it is, the content of what it was made of, the machine it was placed on, its port."""

RECORD, TRAIN = "record", "train"
"""The volumes of a cluster: the keeper's account, and checkpoints where the user names no other place."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 50


def base(cluster: Cluster) -> str:
    """What the names of all that is the cluster's begin with."""
    parts = (cluster["project"], cluster["stack"], cluster["name"])
    whole = "_".join(parts)
    fit = _UNFIT.sub("-", whole).strip("-_")
    if fit == whole and len(fit) <= _LONGEST and whole.count("_") == len(parts) - 1:
        return fit
    return f"{fit[: _LONGEST - 9].strip('-_')}-{hashlib.sha256('/'.join(parts).encode()).hexdigest()[:8]}"


def service(cluster: Cluster, hostname: str) -> str:
    """The name of a task's service."""
    return f"{base(cluster)}-{hostname}"


def volume(cluster: Cluster, part: str) -> str:
    """The name of one of the cluster's own volumes."""
    return f"{base(cluster)}-{part}"


def labels(cluster: Cluster) -> Mapping[str, str]:
    """The labels that all of the cluster's things carry."""
    return {f"{PREFIX}{key}": cluster[key] for key in ("project", "stack")} | {f"{PREFIX}cluster": cluster["name"]}


def filters(cluster: Cluster) -> dict[str, list[str]]:
    """The filter that finds them."""
    return {"label": [f"{name}={value}" for name, value in labels(cluster).items()]}
