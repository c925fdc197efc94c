"""Distributed TensorFlow with Pulumi: a component that provisions machines, runs TensorFlow tasks on them and monitors the training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .program import tracebacks

if TYPE_CHECKING:
    from .args import (
        ContainerArgs,
        DockerArgs,
        Ec2Args,
        JobArgs,
        KubernetesArgs,
        RestartArgs,
        ServiceArgs,
        TensorFlowClusterArgs,
    )
    from .cluster import TensorFlowCluster
    from .errors import SpecError, TfdeployError

__all__ = [
    "ContainerArgs",
    "DockerArgs",
    "Ec2Args",
    "JobArgs",
    "KubernetesArgs",
    "RestartArgs",
    "ServiceArgs",
    "SpecError",
    "TensorFlowCluster",
    "TensorFlowClusterArgs",
    "TfdeployError",
]

_HOMES = {
    "ContainerArgs": "args",
    "DockerArgs": "args",
    "Ec2Args": "args",
    "JobArgs": "args",
    "KubernetesArgs": "args",
    "RestartArgs": "args",
    "ServiceArgs": "args",
    "SpecError": "errors",
    "TensorFlowCluster": "cluster",
    "TensorFlowClusterArgs": "args",
    "TfdeployError": "errors",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use: the `tfdeploy` command does not need them, and Pulumi takes long to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


tracebacks.hide()
