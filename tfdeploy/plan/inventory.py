"""What exists before a plan is made. A backend reads it once (`Planner.inspect`), and nothing changes it afterwards. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from ..agent.run_state import RunState
from .scheduler import Machine


class PlaceRef(TypedDict):
    """Where a cluster was created. `ClusterRef.home` is not enough: another computer or engine may have the same address."""

    id: str
    """The id of the machine, of the engine, or of the account; empty where that is not known."""
    name: str
    """Its name, for people."""
    swarm: NotRequired[str]
    """The id of the Swarm that the engine manages; missing elsewhere, and in older states."""


@dataclass(frozen=True)
class Inventory:
    """Machines, tasks and folders, and what depends on them in the run."""

    machines: tuple[Machine, ...]
    """The machines on which tasks can be placed: those that exist, and those that the plan may create."""
    command: tuple[str, ...]
    """What the tasks run: the `command` argument, or else the entry point of the image."""
    train_dir: str
    data_dir: str = ""
    """As the tasks see it: an absolute path, or a URL. Empty for none."""
    image: str = ""
    """What identifies the image in the name of a run; empty where there is none, or only the default."""
    task_machines: Mapping[str, str] = field(default_factory=dict)
    """Hostname of each existing task to its machine."""
    task_gpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Hostname of each existing task to its GPUs, where the plan chooses them; empty where the engine does."""
    single_machine: bool = False
    """Whether all tasks run on one machine anyway, so that constraints on machines do not apply."""
    run: RunState | None = None
    """The current run, as its record has it."""
    results: Mapping[str, str] = field(default_factory=dict)
    """The id of each stored run to the state of its result; empty for a run that has none."""
    place_id: str = ""
    """The id of the engine, of the machine or of the account that the cluster is on; empty where that is not known."""
    place_name: str = ""
    """Its name, for people."""
    place_swarm: str = ""
    """The id of the Swarm that the engine manages; empty elsewhere."""
    facts: object = None
    """What only the backend's own `validate`, `render` and `register_dependencies` read: one of its dataclasses."""
