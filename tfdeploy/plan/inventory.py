"""What exists before a plan is made. A backend reads it once (`Planner.inspect`), and nothing changes it afterwards. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from ..agent.model.run_state import RunState
from ..outputs import CostSummary
from .scheduler import Machine


class PlaceRef(TypedDict):
    """Where a cluster was created. `ClusterRef.home` is not enough: another computer or engine may have the same address."""

    id: str
    """The id of the machine, of the engine, or of the account; empty where that is not known."""
    name: str
    """Its name, for people."""
    swarm: NotRequired[str]
    """The id of the Swarm that the engine manages, if it does."""


class RunCost(TypedDict, total=False):
    """The fields of `RunSpec` about the cost of the machines; none where nothing is billed."""

    cost_per_hour: float
    cost_is_maximum: bool
    unpriced: list[str]
    cost_to_end: float


@dataclass(frozen=True)
class Inventory:
    """Machines, tasks and folders, and what depends on them in the run. A backend's own subclass has what only its planner reads."""

    machines: tuple[Machine, ...]
    """The machines on which the plan can place tasks: those that exist, and those that it may create."""
    train_dir: str
    data_dir: str = ""
    """As the tasks see it: an absolute path, or a URL. Empty for none."""
    entry_point: tuple[str, ...] = ()
    """The command of the image, which the tasks run where the user gives none."""
    image: str = ""
    """What identifies the image in the name of a run; empty where there is none, or only the default."""
    task_machines: Mapping[str, str] = field(default_factory=dict)
    """Hostname of each existing task to its machine."""
    task_gpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Hostname of each existing task to its GPUs, where the plan chooses them; empty where the engine does."""
    places_tasks: bool = False
    """Whether the engine chooses the machine of each task. Then the plan names none, and needs no machines."""
    lost: frozenset[str] = frozenset()
    """Machines that no longer exist, or are of no use without one that does not. A finished run does not need them."""
    cost: CostSummary = field(default_factory=CostSummary)
    """What the plan knows of the output `cost`; empty where nothing is billed."""
    run_cost: RunCost = field(default_factory=RunCost)
    """What the run is told of the cost of its machines."""
    run: RunState | None = None
    """The current run, as its record has it."""
    results: Mapping[str, str] = field(default_factory=dict)
    """The id of each stored run to the state of its result; empty for a run that has none."""
    place: PlaceRef = field(default_factory=lambda: PlaceRef(id="", name=""))
    """The engine, the machine or the account that the cluster is on."""
