"""Distributed TensorFlow, declared in Python: a Pulumi component that makes machines and tasks stand and follows the training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import JobArgs, RestartArgs, TensorFlowClusterArgs
    from .cluster import TensorFlowCluster
    from .errors import SpecError, TfdeployError

__all__ = ["JobArgs", "RestartArgs", "SpecError", "TensorFlowCluster", "TensorFlowClusterArgs", "TfdeployError"]

_HOMES = {
    "JobArgs": "arguments",
    "RestartArgs": "arguments",
    "SpecError": "errors",
    "TensorFlowCluster": "cluster",
    "TensorFlowClusterArgs": "arguments",
    "TfdeployError": "errors",
}


def __getattr__(name: str) -> Any:
    """A public name, from its module: the `tfdeploy` command needs none of them, and Pulumi takes long to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
