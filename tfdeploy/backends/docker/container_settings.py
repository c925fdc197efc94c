"""The settings of one container that its task does not have on other backends. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .volumes.mounts import Mount


@dataclass(frozen=True)
class ContainerSettings:
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

    def to_dict(self) -> dict[str, Any]:
        """As it is stored in Pulumi's state."""
        values = asdict(self)
        return {**values, "mounts": list(self.mounts), "dropped_capabilities": list(self.dropped_capabilities)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "ContainerSettings":
        """The settings that `to_dict` made."""
        sequences = {key: tuple(values.get(key, ())) for key in ("mounts", "dropped_capabilities")}
        return ContainerSettings(**{**values, **sequences})
