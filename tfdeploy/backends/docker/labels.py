"""Names and labels of what a cluster has on a Docker engine, and its services by their labels. Pure.

A service's name has at most 63 letters, digits, `-` and `_`: swarmkit, `manager/controlapi/common.go`.
"""

from collections.abc import Mapping
from typing import Any

from ...paths import NO_ID, cluster_folder
from ..base import ClusterRef

ServiceJson = Mapping[str, Any]
"""A service in the form of the Engine API."""

Services = Mapping[str, ServiceJson]
"""Existing services by hostname."""

LABEL_PREFIX = "tfdeploy."
HOSTNAME_LABEL = f"{LABEL_PREFIX}hostname"
"""The hostname of the task that a service runs, or `controller`."""

MACHINE_LABEL = f"{LABEL_PREFIX}machine"
"""The machine that a task is placed on."""

PORT_LABEL = f"{LABEL_PREFIX}port"
"""The port on which a controller listens."""

SPEC_HASH_LABEL = f"{LABEL_PREFIX}spec-hash"
"""A hash of the service's definition: a service with another hash is updated."""

VOLUME_LABEL = f"{LABEL_PREFIX}volume"
"""Of the cluster's own volumes: `RECORD_VOLUME` or `TRAIN_VOLUME`."""

MOUNTED_LABEL = f"{LABEL_PREFIX}mounted-by"
"""The only label of a volume that the user named and Docker created: the prefix of the cluster's names. `tfdeploy restart
--without-data` may remove such a volume. Nothing else does: it does not belong to the cluster."""

CLEANUP_IMAGE_LABEL = f"{LABEL_PREFIX}cleanup-image"
"""Of the controller's service: the argument `docker.cleanup_image`, because `pulumi destroy` runs no program."""

RECORD_VOLUME, TRAIN_VOLUME = "record", "train"
"""The volumes of a cluster: the controller's record, and checkpoints where the user sets no `train_dir`."""

NAME_LABEL, ID_LABEL, OWNER_LABEL = (f"{LABEL_PREFIX}{key}" for key in ("cluster", "cluster-id", "owner"))
PROJECT_LABEL, STACK_LABEL = (f"{LABEL_PREFIX}{key}" for key in ("project", "stack"))

_MAX_LENGTH = 50


def name_prefix(cluster: ClusterRef) -> str:
    """The prefix of the names of everything that belongs to a cluster."""
    suffix = cluster_folder(cluster).removeprefix(cluster["name"])
    return f"{cluster['name'][: _MAX_LENGTH - len(suffix)].rstrip('-')}{suffix}"


def service_name(cluster: ClusterRef, hostname: str) -> str:
    """The name of a task's service."""
    return f"{name_prefix(cluster)}-{hostname}"


def volume_name(cluster: ClusterRef, volume: str) -> str:
    """The name of one of the cluster's own volumes (`RECORD_VOLUME`, `TRAIN_VOLUME`)."""
    return f"{name_prefix(cluster)}-{volume}"


def own_volume_labels(cluster: ClusterRef, volume: str) -> dict[str, str]:
    """The labels of one of the cluster's own volumes (`RECORD_VOLUME`, `TRAIN_VOLUME`)."""
    return {**cluster_labels(cluster), VOLUME_LABEL: volume}


def search_labels(cluster: ClusterRef, volume: str = "") -> dict[str, str]:
    """The labels by which everything of a cluster, or a volume that it created, is listed. Not the owner: what an adopted cluster had
    before has the former one."""
    return {ID_LABEL: cluster["id"], **({VOLUME_LABEL: volume} if volume else {})}


def user_volume_labels(cluster: ClusterRef) -> dict[str, str]:
    """The labels of a volume that the user named, where Docker creates it."""
    return {MOUNTED_LABEL: name_prefix(cluster)}


def cluster_labels(cluster: ClusterRef) -> Mapping[str, str]:
    """The labels that everything of a cluster has. They never change: another label of a container or a volume replaces it."""
    return {NAME_LABEL: cluster["name"], ID_LABEL: cluster["id"], OWNER_LABEL: cluster["owner"]}


def stack_labels(cluster: ClusterRef) -> Mapping[str, str]:
    """The labels that only services have, because `pulumi stack rename` changes them."""
    return {PROJECT_LABEL: cluster["project"], STACK_LABEL: cluster["stack"]}


def machine_of(service: ServiceJson) -> str:
    """The machine that a service's task is placed on; empty for a service that is not placed on one."""
    return str(service["Spec"]["Labels"].get(MACHINE_LABEL, ""))


def cluster_filter(cluster: ClusterRef) -> dict[str, list[str]]:
    """The Engine API's filter for everything that belongs to a cluster; before it has an id, for nothing.

    For services and tasks, a label without a value would match every value: swarmkit, `manager/controlapi/common.go`.
    """
    return label_filter({ID_LABEL: cluster["id"] or NO_ID})


def label_filter(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """The Engine API's filter for everything that has all these labels."""
    return {"label": [f"{name}={value}" for name, value in labels.items()]}
