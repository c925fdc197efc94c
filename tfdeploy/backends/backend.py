"""One backend: where its contracts are made, and what else the others need to know of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base import ClusterRef, Discovery, TaskAccess, TaskRunner

if TYPE_CHECKING:  # the command imports this module too, and needs no plan
    from ..plan.inventory import PlaceRef
    from .planning import MachineProvider, Planner


@dataclass(frozen=True)
class Backend:
    """One backend. Its contracts are made when they are needed, because each of them takes long to load."""

    make_planner: "Callable[[], Planner[Any]]"
    make_runner: Callable[[], TaskRunner]
    make_access: Callable[[], TaskAccess]
    discovery: Discovery
    heal_command: str
    """The command that creates tasks and machines that died again."""
    machine_provider: "MachineProvider | None" = None
    describe_other_place: "Callable[[ClusterRef, PlaceRef, PlaceRef], tuple[str, str] | None]" = lambda *_: None
    """What is wrong with another place at the address of the stored one, and what to do; None for what is so on every backend."""
    adoption_completed_by: frozenset[str] = frozenset()
    """The names of resources, without the prefix. Until the state has one of them, an update after an interrupted one still adopts.
    Empty: what an update creates is the cluster's from the beginning."""

    @property
    def planner(self) -> "Planner[Any]":
        """The planner, which keeps no state."""
        return self.make_planner()

    @property
    def runner(self) -> TaskRunner:
        """The task runner."""
        return self.make_runner()

    @property
    def access(self) -> TaskAccess:
        """How a user reaches a task."""
        return self.make_access()
