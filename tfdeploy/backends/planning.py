"""The contracts of a backend that only plans need: `Planner` and `MachineProvider`, and the types that cross them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .base import ClusterRef, ObservedMachines, Retain

if TYPE_CHECKING:  # a backend is loaded by the command too, which needs neither spec nor plan
    import pulumi

    from ..agent.model.json_data import JsonData
    from ..plan.inventory import Inventory
    from ..plan.plan import Change, Plan
    from ..plan.retained_data import RetainedData
    from ..plan.scheduler import Machine
    from ..spec.cluster import ClusterSpec
    from .move import Replacement

InventoryT = TypeVar("InventoryT", bound="Inventory")
"""What a backend reports that exists: a subclass of `Inventory` has what only its own planner reads."""


@dataclass(frozen=True)
class Rendered:
    """What a plan becomes on one backend. Made once by `Planner.render`."""

    tasks: "Mapping[str, JsonData]" = field(default_factory=dict)
    """Hostname to what `TaskProps.container` has as JSON. Empty where tasks are processes."""
    controller: "JsonData | None" = None
    """What `RunProps.container` has as JSON; None where the controller is a process."""
    changes: "tuple[Change | str, ...]" = ()
    """What an update would change in tasks and machines that exist; and what it costs."""
    retained: "tuple[RetainedData, ...]" = ()
    """Each place that has data of the cluster or will have it, and whether `pulumi destroy` keeps it."""
    replacement: "Replacement | None" = None
    """What happens with the run where machines are replaced."""


@dataclass(frozen=True)
class DependencyRequest(Generic[InventoryT]):
    """What `Planner.register_dependencies` registers for."""

    name: str
    """The prefix of the resources' names."""
    cluster: ClusterRef
    spec: "ClusterSpec"
    plan: "Plan"
    inventory: InventoryT
    token: "pulumi.Output[str]"
    secrets: Mapping[str, "pulumi.Input[str]"]
    opts: "pulumi.ResourceOptions"


class Planner(Protocol[InventoryT]):
    """From the spec to what Pulumi registers. All but `register_dependencies` only read."""

    def home(self, folder: str, spec: "ClusterSpec", providers: "Mapping[str, pulumi.ProviderResource]") -> str:
        """`ClusterRef.home` of a cluster, whether it exists or not; `folder` is `paths.cluster_folder`. This is called first.
        `providers` are the explicit ones of the program, by package. SpecError: the place is not allowed."""

    def inspect(self, cluster: ClusterRef, spec: "ClusterSpec", program_folder: Path) -> InventoryT:
        """What exists. Relative folders of the spec begin at `program_folder`. It changes nothing, neither at the place nor on
        this computer.

        Raises:
            SpecError: an argument names something that does not exist.
            Unreachable: the place does not respond.
        """

    def validate(
        self, cluster: ClusterRef, spec: "ClusterSpec", plan: "Plan", inventory: InventoryT, code_files: Sequence[str]
    ) -> Sequence[str]:
        """Refuse a plan that cannot work, before anything is created; the warnings about the rest.

        Raises:
            SpecError: with the argument, what is wrong with it, and what to do.
        """

    def render(self, cluster: ClusterRef, spec: "ClusterSpec", plan: "Plan", inventory: InventoryT) -> Rendered:
        """What each task's process, service or instance will be, and what that changes.

        Raises:
            SpecError: an argument is not valid.
        """

    def register_dependencies(self, request: DependencyRequest[InventoryT]) -> Mapping[str, Mapping[str, Any]]:
        """Register, with Pulumi, what tasks and controller need before they can be created. Job to its `TaskProps.dependencies`, with
        Pulumi's outputs among the values."""


class MachineProvider(Protocol):
    """Creates the machines that tasks run on. Only a backend that rents machines has one."""

    def inspect(self, cluster: ClusterRef, spec: "ClusterSpec") -> "tuple[Sequence[Machine], Sequence[str]]":
        """The machines that the cluster needs, those that exist and those that are to be created; and the names of the machines that
        exist, but are not needed."""

    def register(self, request: DependencyRequest[Any]) -> Any:
        """Register the machines with Pulumi; the resource that exists when they form a cluster."""

    def observe(self, cluster: ClusterRef) -> ObservedMachines:
        """The machines as they are now; where the place does not respond, `problems` reports it. It writes nothing."""

    def verify(self, cluster: ClusterRef, place_id: str) -> None:
        """Check that this is the place with the cluster's machines, before any is deleted. SpecError: it is another one."""

    def delete_all(self, cluster: ClusterRef, retain: Retain) -> str:
        """Remove machines, disks and networks; a sentence about what is retained."""
