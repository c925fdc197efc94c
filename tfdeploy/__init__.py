"""Distributed TensorFlow, declared in Python: a Pulumi component that makes machines and tasks stand and follows the training."""

from .arguments import JobArgs, RestartArgs, TensorFlowClusterArgs
from .cluster import TensorFlowCluster
from .errors import SpecError, TfdeployError

__all__ = ["JobArgs", "RestartArgs", "SpecError", "TensorFlowCluster", "TensorFlowClusterArgs", "TfdeployError"]
