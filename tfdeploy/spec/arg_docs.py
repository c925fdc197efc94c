"""The documentation of the arguments as data, for the reference, the schema and `tfdeploy options`."""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import args
from ..units import text_of_seconds
from .cluster import ClusterSpec
from .docker import ContainerSpec, DockerSpec, JobContainerSpec
from .ec2 import Ec2Spec, InstanceSpec
from .jobs import JobSpec
from .kubernetes import KubernetesSpec, PodSpec
from .restart import Restart

CLASSES: Mapping[str, str] = {
    "": "TensorFlowClusterArgs",
    "restart.": "RestartArgs",
    "elastic.": "ElasticArgs",
    "jobs.JOB.": "JobArgs",
    "jobs.JOB.container.": "JobContainerArgs",
    "jobs.JOB.ec2.": "JobEc2Args",
    "jobs.JOB.kubernetes.": "JobKubernetesArgs",
    "services.NAME.": "ServiceArgs",
    "data_service.": "DataServiceArgs",
    "container.": "ContainerArgs",
    "docker.": "DockerArgs",
    "ec2.": "Ec2Args",
    "kubernetes.": "KubernetesArgs",
}
"""The prefix of arguments to the class that has them."""

_SPECS: Mapping[str, tuple[type, ...]] = {
    "TensorFlowClusterArgs": (ClusterSpec,),
    "RestartArgs": (Restart,),
    "JobArgs": (JobSpec,),
    "ServiceArgs": (JobSpec,),
    "ContainerArgs": (ContainerSpec, JobContainerSpec),
    "DockerArgs": (DockerSpec,),
    "Ec2Args": (Ec2Spec, InstanceSpec),
    "KubernetesArgs": (KubernetesSpec, PodSpec),
}
"""The classes of arguments to the dataclasses that have their defaults. The groups of a job have none: the cluster's apply."""

_COUNTS = {
    "TensorFlowClusterArgs": {
        "ps": "0",
        "workers": "0",
        "gpu_workers": "0",
        "chief": "False",
        "evaluator": "False",
        "tensorboard": "False",
    },
    "ServiceArgs": {"count": "1"},
}
"""Defaults of the arguments that count tasks."""

_UNSET_IF_0 = ("budget", "machine_count", "port", "retention")


@dataclass(frozen=True)
class Row:
    """One argument, or one attribute of another documented class."""

    name: str
    type: str
    default: str
    """As the user would write it; empty if there is none, or if the text describes it."""
    text: str


def rows(owner: str) -> tuple[Row, ...]:
    """The arguments of one class of `args`."""
    return tuple(
        Row(name, _type(kind), default(owner, name), text) for name, kind, text in docstrings("args", owner)[1:]
    )


@cache
def docstrings(module: str, name: str) -> tuple[tuple[str, str, str], ...]:
    """Name, annotation and docstring of each attribute of a class; the first one is the class itself, under an empty name."""
    return tuple(_docstrings(module, name))


def default(owner: str, name: str) -> str:
    """The default of an argument, from the dataclasses of `spec/`."""
    if name in _COUNTS.get(owner, {}):
        return _COUNTS[owner][name]
    for spec in _SPECS.get(owner, ()):
        for field in fields(spec):
            if field.name == name and field.default is not MISSING:
                return "" if name in _UNSET_IF_0 else _default_text(field.default, field.metadata.get("unit", ""))
    return ""


def _default_text(value: Any, unit: str) -> str:
    if value in ("", (), "{}", None):
        return ""
    if unit == "s":
        return f'"{text_of_seconds(value)}"'
    if unit and value:
        return f'"{value}{unit}"'
    if isinstance(value, (str, tuple)):
        return json.dumps(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _type(annotation: str) -> str:
    """The type without `pulumi.Input`, which all arguments have; lists and mappings by their plain names."""
    annotation = annotation.replace("pulumi.Input[Sequence[pulumi.Input[str]]]", "list[str]")
    annotation = annotation.replace("pulumi.Input[Mapping[str, pulumi.Input[str]]]", "dict[str, str]")
    annotation = annotation.replace("Mapping[", "dict[")
    if annotation.startswith("pulumi.Input["):
        annotation = annotation.removeprefix("pulumi.Input[").removesuffix("]")
    kind = getattr(args, annotation, None)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " | ".join(f'"{choice.value}"' for choice in kind)
    return annotation


def _docstrings(module: str, name: str) -> Iterator[tuple[str, str, str]]:
    tree = ast.parse((Path(__file__).parents[1] / f"{module}.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    owner = classes[name]
    yield "", "", ast.get_docstring(owner) or ""
    inherited = [classes[base.id].body for base in owner.bases if isinstance(base, ast.Name) and base.id in classes]
    for body in (owner.body, *inherited):
        for item, following in pairwise(body):
            if isinstance(item, ast.AnnAssign) and isinstance(following, ast.Expr):
                text = ast.literal_eval(following.value)
                yield ast.unparse(item.target), ast.unparse(item.annotation), " ".join(text.split())
