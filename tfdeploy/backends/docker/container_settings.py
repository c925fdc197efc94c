"""The settings of one container that its task does not have on other backends. Pure."""

from dataclasses import dataclass

from ...agent.json_data import JsonData
from .volumes.mounts import Mount


@dataclass(frozen=True)
class ContainerSettings(JsonData):
    """A task's container, or the controller's: what `TaskProps.container` and `RunProps.container` store in Pulumi's state."""

    job: str
    image: str
    """As the user named it; an image that was built for the job replaces it."""
    network: str
    """`overlay` or `host`."""
    controller_address: str
    """Where launchers connect to the controller."""
    user: str = ""
    mounts: tuple[Mount, ...] = ()
    shm_size: int = 0
    """Bytes; 0 for Docker's default."""
    gpu_kind: str = ""
    """The name of the machine's GPUs among its generic resources."""
    dropped_capabilities: tuple[str, ...] = ()
    constraint: str = ""
    """The placement constraint of the controller; tasks are placed by the plan."""
    cleanup_image: str = ""
    """Of the controller: the argument `docker.cleanup_image`."""
