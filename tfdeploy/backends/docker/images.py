"""Which image each job's tasks run, and how those are made that are not just named. Pure but for `write_context`."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...bundle import collect
from ...errors import BundleError, SpecError
from ...spec import ClusterSpec, JobSpec
from ..base import Cluster
from ..folders import cache_folder
from . import names

DEFAULT = "tensorflow/tensorflow:2.20.0"
DEFAULT_GPU = f"{DEFAULT}-gpu"
"""TensorFlow's official images, https://hub.docker.com/r/tensorflow/tensorflow. Not 2.21.0: people report that CUDA's
libraries in its `-gpu` image do not match TensorFlow's."""

_REQUIREMENTS = """\
FROM {base}
RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir --no-input --disable-pip-version-check {requirements}
"""


@dataclass(frozen=True)
class Build:
    """An image that is to be built, and pushed where there is a registry."""

    name: str
    context: str
    """The folder that is built; empty where only `dockerfile` counts."""
    dockerfile: str = ""


def named(spec: ClusterSpec, job: JobSpec) -> str:
    """The image that a job's tasks run, if nothing is built."""
    return job.container.image or spec.image or (DEFAULT_GPU if job.gpus else DEFAULT)


def content(spec: ClusterSpec) -> str:
    """What names the content of the folder `build`; empty when there is none.

    Raises:
        SpecError: the folder is missing, or cannot be read whole.
    """
    try:
        return collect(spec.name, Path(spec.engine.build), []).name if spec.engine.build else ""
    except BundleError as error:
        raise SpecError(f"{spec.name}: build", error.wrong, error.remedy) from None


def builds(cluster: Cluster, spec: ClusterSpec, tag: str) -> Mapping[str, Sequence[Build]]:
    """Job to the images that are built for it, the last one being what its tasks run; `tag` names the content of `build`."""
    return {job.name: made for job in spec.jobs if (made := _chain(cluster, spec, job, tag))}


def image(cluster: Cluster, spec: ClusterSpec, job: JobSpec, tag: str) -> str:
    """The image that a job's tasks run."""
    chain = _chain(cluster, spec, job, tag)
    return chain[-1].name if chain else named(spec, job)


def _chain(cluster: Cluster, spec: ClusterSpec, job: JobSpec, tag: str) -> Sequence[Build]:
    prefix = f"{spec.engine.registry}/" if spec.engine.registry else ""
    # No registry takes two such signs in a row but hyphens, and two underscores.
    name = prefix + re.sub("[_-]{2,}", "-", names.base(cluster).lower())
    own = spec.engine.build and not job.container.image
    chain = [Build(f"{name}:{tag[:16]}", spec.engine.build)] if own else []
    if spec.requirements:
        base = chain[-1].name if chain else named(spec, job)
        requirements = " ".join(map(shlex.quote, spec.requirements))
        text = _REQUIREMENTS.format(base=base, requirements=requirements)
        chain.append(Build(f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}", "", text))
    return chain


def write_context(build: Build) -> str:
    """The folder to build: the user's, or one of ours with nothing but the Dockerfile in it."""
    if build.context:
        return str(Path(build.context).absolute())
    folder = cache_folder() / "images" / build.name.rpartition(":")[2]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(build.dockerfile)
    return str(folder)
