"""What of the image counts in the name of a run: the name that the user wrote, or the files that it is built from.

It counts on `local` too, which uses no image: a run that moves to a backend with containers keeps its name.
"""

from pathlib import Path

from ..errors import BundleError, SpecError
from ..plan.code_bundle import collect
from ..spec.cluster import ClusterSpec
from ..spec.jobs import JobSpec

DEFAULT_VERSION = "2.20.0"
DEFAULT_IMAGE = f"tensorflow/tensorflow:{DEFAULT_VERSION}"
DEFAULT_GPU_IMAGE = f"{DEFAULT_IMAGE}-gpu"
"""TensorFlow's official images, https://hub.docker.com/r/tensorflow/tensorflow. Not 2.21.0: users report that the versions of
CUDA's libraries in its `-gpu` image do not match TensorFlow's."""


def named_image_content(spec: ClusterSpec) -> str:
    """The image as the user named it, or a hash of the folder `build`; empty without both.

    Raises:
        SpecError: the folder does not exist, or a file in it cannot be read.
    """
    return spec.written_container.image or context_hash(spec)


def context_hash(spec: ClusterSpec) -> str:
    """A hash of the files in the folder `build`; empty without one.

    Raises:
        SpecError: the folder does not exist, or a file in it cannot be read.
    """
    build = spec.written_container.build
    try:
        return collect(spec.name, Path(build), []).name if build else ""
    except BundleError as error:
        raise SpecError(f"{spec.name}: container.build", error.wrong, error.remedy) from None


def named_image(spec: ClusterSpec, job: JobSpec) -> str:
    """The image of a job as named by the user, or the default."""
    return job.container.image or spec.container.image or (DEFAULT_GPU_IMAGE if job.gpus else DEFAULT_IMAGE)
