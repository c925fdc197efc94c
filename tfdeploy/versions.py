"""What is installed here, by version."""

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "pulumi-tfdeploy",
    "pulumi",
    "tensorflow",
    "tensorflow-cpu",
    "tensorboard",
    "docker",
    "pulumi-docker",
    "pulumi-aws",
)


def versions() -> dict[str, str]:
    """Name to version, of Python and of those of our packages that are there."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
