"""Which image a type of machine gets, and where its id is looked up. Pure."""

from ..instances import DEEP_LEARNING
from .facts import ARM, InstanceType

_ECS = "/aws/service/ecs/optimized-ami/amazon-linux-2023{flavour}/recommended/image_id"
"""https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html"""

_DLAMI = "/aws/service/deeplearning/ami/{architecture}/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
"""https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html"""

_PARAMETER = "ssm:"


def image_name(ami: str, kind: InstanceType) -> str:
    """The image asked for: an id, or the path of the public parameter that has it."""
    if ami.startswith(_PARAMETER):
        return ami.removeprefix(_PARAMETER)
    if ami == DEEP_LEARNING:
        return _DLAMI.format(architecture=kind.architecture)
    if ami:
        return ami
    flavour = "/gpu" if kind.gpus else "/arm64" if kind.architecture == ARM else ""
    return _ECS.format(flavour=flavour)


def is_parameter(name: str) -> bool:
    """Whether an image's id must be looked up under this name."""
    return name.startswith("/")
