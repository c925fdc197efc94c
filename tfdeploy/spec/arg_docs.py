"""The documentation of the arguments as data, for `args.py`, the reference, the schema and `tfdeploy options`."""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from ..units import text_of_seconds
from .argument import NAMED_GROUPS, Argument, arguments
from .cluster import ClusterSpec
from .docker import ContainerSpec, DockerSpec, JobContainerSpec
from .ec2 import Ec2Spec, InstanceSpec
from .jobs import DataServiceSpec, ElasticSpec, JobSpec, Restart, ServiceSpec
from .kubernetes import KubernetesSpec, PodSpec

CLASSES: Mapping[str, tuple[str, type]] = {
    "": ("TensorFlowClusterArgs", ClusterSpec),
    "restart.": ("RestartArgs", Restart),
    "elastic.": ("ElasticArgs", ElasticSpec),
    "jobs.JOB.": ("JobArgs", JobSpec),
    "jobs.JOB.container.": ("JobContainerArgs", JobContainerSpec),
    "jobs.JOB.ec2.": ("JobEc2Args", InstanceSpec),
    "jobs.JOB.kubernetes.": ("JobKubernetesArgs", PodSpec),
    "services.NAME.": ("ServiceArgs", ServiceSpec),
    "data_service.": ("DataServiceArgs", DataServiceSpec),
    "container.": ("ContainerArgs", ContainerSpec),
    "docker.": ("DockerArgs", DockerSpec),
    "ec2.": ("Ec2Args", Ec2Spec),
    "kubernetes.": ("KubernetesArgs", KubernetesSpec),
}
"""The prefix of arguments to the TypedDict that users write, and to the dataclass that declares them."""

NAMES = {owner: name for name, owner in CLASSES.values()}
"""The dataclass to the TypedDict."""


@dataclass(frozen=True)
class Row:
    """One argument."""

    name: str
    type: str
    default: str
    """As the user would write it; empty if there is none, or if the text describes it."""
    text: str


def rows(prefix: str) -> tuple[Row, ...]:
    """The arguments with this prefix; those of services without what all jobs have."""
    _, owner = CLASSES[prefix]
    job, _, group = prefix.removesuffix(".").rpartition(".")
    if job == "jobs.JOB":
        as_the_clusters = f"As `{group}.{{}}`, for this job; {{}}."
        return tuple(
            Row(name, _type(argument), "", as_the_clusters.format(name, argument.of_job))
            for name, argument in arguments(owner).items()
        )
    return tuple(
        Row(name, _type(argument), _default(argument, getattr(owner, name, None)), attributes(owner)[name][1])
        for name, argument in arguments(owner).items()
    )


def described(prefix: str) -> tuple[Row, ...]:
    """All arguments with this prefix; services have those of jobs too."""
    return rows(prefix) + (rows("jobs.JOB.") if CLASSES[prefix][1] is ServiceSpec else ())


def _type(argument: Argument) -> str:
    if argument.choices:
        return " | ".join(f'"{value}"' for value in argument.choices.values)
    if argument.members is None:
        return argument.kind
    name = NAMES[argument.members]
    return f"dict[str, {name}]" if argument.kind == NAMED_GROUPS else name


def _default(argument: Argument, value: object) -> str:
    if value in ("", (), "{}", None) or argument.members or not argument.has_default:
        return ""
    if argument.unit == "s" and isinstance(value, float):
        return f'"{text_of_seconds(value)}"'
    if argument.unit and value:
        return f'"{value}{argument.unit}"'
    if isinstance(value, (str, tuple)):
        return json.dumps(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def attributes(owner: type) -> Mapping[str, tuple[str, str]]:
    """The attributes of a class and of its bases: name to annotation and docstring, from the code."""
    own_kinds = [kind for kind in reversed(owner.__mro__) if kind.__module__.startswith(("tfdeploy.", "tools."))]
    return {name: described for kind in own_kinds for name, described in _attributes(kind)}


def _attributes(owner: type) -> Iterator[tuple[str, tuple[str, str]]]:
    tree = ast.parse(Path(sys.modules[owner.__module__].__file__ or "").read_text(encoding="utf-8"))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner.__name__)
    for item, following in pairwise(body):
        if isinstance(item, ast.AnnAssign) and isinstance(following, ast.Expr):
            text = ast.literal_eval(following.value)
            yield ast.unparse(item.target), (ast.unparse(item.annotation), " ".join(text.split()))
