"""What a container has that its task does not have on other backends: its settings, and the objects that it needs. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, cast

from ..base import RunProps, TaskProps
from .volumes.mounts import Mount


class Reference(TypedDict):
    """How the engine refers to an object that Pulumi created on it."""

    id: str
    name: str


class ContainerDependencies(TypedDict, total=False):
    """The objects that a container needs on its engine: what `TaskProps.dependencies` stores in Pulumi's state."""

    network: str
    agent: Reference
    token: Reference
    launcher_token: Reference
    """That of the task's launcher. The task runner creates it: it is not in a state."""
    secrets: dict[str, Reference]
    """Name of a variable to the secret that holds its value."""
    image: str
    """The image that was built for the job; missing where none is built."""
    swarm: str
    """The id of the Swarm: another Swarm needs its tasks created again."""
    manager: str
    """The private address of the machine that manages the Swarm."""


def dependencies_of(props: TaskProps | RunProps) -> ContainerDependencies:
    """The objects that a task's container, or the controller's, needs."""
    return cast(ContainerDependencies, props["dependencies"])


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
