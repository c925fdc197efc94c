"""The image of each job, and the images that are built."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from ...spec.cluster import ClusterSpec, JobSpec
from ..base import ClusterRef
from .labels import name_prefix

DEFAULT_VERSION = "2.20.0"
DEFAULT_IMAGE = f"tensorflow/tensorflow:{DEFAULT_VERSION}"
DEFAULT_GPU_IMAGE = f"{DEFAULT_IMAGE}-gpu"
"""TensorFlow's official images, https://hub.docker.com/r/tensorflow/tensorflow. Not 2.21.0: users report that the versions of
CUDA's libraries in its `-gpu` image do not match TensorFlow's."""

_REQUIREMENTS = """\
FROM {base}
RUN python3 -m pip --version || {{ echo {no_pip}; exit 1; }} && \\
    PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir --no-input --disable-pip-version-check {requirements}
"""
_NO_PIP = "tfdeploy: requirements: the image {base} has no pip for python3. Use an image that has it, or install the packages in yours."


@dataclass(frozen=True)
class Build:
    """An image to build, and to push if there is a registry."""

    name: str
    context: str
    """The build context, a folder of the user; empty where `dockerfile` is the whole of it."""
    dockerfile: str = ""
    action: str = ""
    """What a message about it names, where `dockerfile` is the whole of it."""


def installed_version() -> str:
    """The version of TensorFlow on this computer; empty without one."""
    for package in ("tensorflow", "tensorflow-cpu"):
        with suppress(PackageNotFoundError):
            return version(package)
    return ""


def version_notices(spec: ClusterSpec, installed: str) -> list[str]:
    """A sentence if jobs run a default image, and this computer has another TensorFlow: a program may behave differently on `local`.
    `installed` is empty where there is none."""
    names = sorted({named_image(spec, job) for job in spec.jobs} & {DEFAULT_IMAGE, DEFAULT_GPU_IMAGE})
    if not names or spec.container.build or installed in ("", DEFAULT_VERSION):
        return []
    where = " and ".join(names)
    return [
        f"TensorFlow {DEFAULT_VERSION} is in {where}, but this computer has {installed}. container.image sets another image"
    ]


def named_image(spec: ClusterSpec, job: JobSpec) -> str:
    """The image of a job as named by the user, or the default."""
    return job.container.image or spec.container.image or (DEFAULT_GPU_IMAGE if job.gpus else DEFAULT_IMAGE)


def builds(cluster: ClusterRef, spec: ClusterSpec, build_hash: str) -> Mapping[str, Sequence[Build]]:
    """The images to build for each job, in order; its tasks run the last one."""
    return {job.name: chain for job in spec.jobs if (chain := _build_chain(cluster, spec, job, build_hash))}


def job_image(cluster: ClusterRef, spec: ClusterSpec, job: JobSpec, build_hash: str) -> str:
    """The image of a job: the last one built for it, else the named one."""
    chain = _build_chain(cluster, spec, job, build_hash)
    return chain[-1].name if chain else named_image(spec, job)


def _build_chain(cluster: ClusterRef, spec: ClusterSpec, job: JobSpec, build_hash: str) -> Sequence[Build]:
    prefix = f"{spec.container.registry}/" if spec.container.registry else ""
    # A registry refuses two separators in a row, except hyphens and two underscores.
    name = prefix + re.sub("[_-]{2,}", "-", name_prefix(cluster).lower())
    builds_folder = spec.container.build and not job.container.image
    chain = [Build(f"{name}:{build_hash[:16]}", spec.container.build)] if builds_folder else []
    if spec.requirements:
        base = chain[-1].name if chain else named_image(spec, job)
        requirements = " ".join(map(shlex.quote, spec.requirements))
        no_pip = shlex.quote(_NO_PIP.format(base=base))
        text = _REQUIREMENTS.format(base=base, requirements=requirements, no_pip=no_pip)
        action = f"{spec.name}: installing the requirements {', '.join(spec.requirements)}"
        chain.append(Build(f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}", "", text, action))
    return chain
