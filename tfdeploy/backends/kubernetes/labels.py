"""Names and labels of what a cluster has in a namespace. Pure.

A name has at most 63 lower-case letters, digits and `-`; Kubernetes adds 6 characters to that of a Job for its pods.
"""

from collections.abc import Mapping
from typing import Any

from ...paths import NO_ID
from ..base import CONTROLLER, ClusterRef

Json = Mapping[str, Any]

PREFIX = "tfdeploy/"
"""Of all labels and annotations."""

ID_LABEL, NAME_LABEL, HOSTNAME_LABEL, JOB_LABEL = (
    f"{PREFIX}{key}" for key in ("cluster-id", "cluster", "hostname", "job")
)
HASH_LABEL = f"{PREFIX}spec-hash"
"""A hash of an object's definition: one with another hash is updated."""

OWNER, PROJECT, STACK = (f"{PREFIX}{key}" for key in ("owner", "project", "stack"))
"""Annotations: their values have characters that a label does not take."""

SETTINGS = f"{PREFIX}settings"
"""An annotation of a Job: the task's settings, which previews compare."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Kueue's label of a Job that waits in a queue."""

TOKEN, SECRETS, AGENT = "token", "secrets", "agent"
"""The suffixes of the names of the Secrets with the cluster's token and with the user's secrets, and of the agent's ConfigMap."""

RECORD, TRAIN = "record", "train"
"""Those of the claims with the controller's record, and with checkpoints."""

_LONGEST_NAME = 24


def prefix(cluster: ClusterRef) -> str:
    """The prefix of the names of everything that belongs to a cluster, and the name of its Service."""
    return f"{cluster['name'][:_LONGEST_NAME].rstrip('-').lower()}-{cluster['id'] or NO_ID}"


def object_name(cluster: ClusterRef, suffix: str) -> str:
    """The name of one object, such as that of a task's Job."""
    return f"{prefix(cluster)}-{suffix}"


def controller_pod(cluster: ClusterRef) -> str:
    """The name of the controller's only pod: a StatefulSet numbers its pods."""
    return f"{object_name(cluster, CONTROLLER)}-0"


def cluster_labels(cluster: ClusterRef) -> dict[str, str]:
    """The labels that everything of a cluster has."""
    return {ID_LABEL: cluster["id"], NAME_LABEL: cluster["name"]}


def annotations(cluster: ClusterRef) -> dict[str, str]:
    """Who the cluster is of, for people. `pulumi stack rename` changes it."""
    return {OWNER: cluster["owner"], PROJECT: cluster["project"], STACK: cluster["stack"]}


def selector(cluster: ClusterRef) -> str:
    """Lists everything that belongs to a cluster; before it has an id, nothing."""
    return f"{ID_LABEL}={cluster['id'] or NO_ID}"


def metadata(
    cluster: ClusterRef, suffix: str, labels: Mapping[str, str] = {}, notes: Mapping[str, str] = {}
) -> dict[str, Any]:
    """The metadata of an object; `suffix` is empty for that of the cluster's own name, `notes` are further annotations."""
    return {
        "name": object_name(cluster, suffix) if suffix else prefix(cluster),
        "labels": {**cluster_labels(cluster), **labels},
        "annotations": {**annotations(cluster), **notes},
    }


def hostname_of(item: Json) -> str:
    """The hostname of the task that an object belongs to; empty for others."""
    return str((item["metadata"].get("labels") or {}).get(HOSTNAME_LABEL, ""))
