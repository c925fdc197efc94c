"""The contracts of a backend, and the types that cross them.

A backend is a record of small contracts (`backend.Backend`): `Planner`, `TaskRunner`, `TaskAccess` and `Discovery`; where it creates
machines, `MachineProvider`, and where runs can move, `move_checks.RunMover`. A task is whatever the place runs: a process, a container,
a job. A method with a body does the least that is needed itself. None keeps state in memory: each call gets the `ClusterRef` of the
cluster that it is about. A delete treats "not found" as success. What a `TaskRunner` gets and returns is plain JSON, because it goes
through Pulumi's state. `design/backends.md` describes how to add a backend.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NotRequired, Protocol, TypedDict, TypeVar

from ..agent.model.json_data import JsonData
from ..errors import BackendError
from ..units import text_of_size

if TYPE_CHECKING:  # the command imports this module too, and needs neither spec nor plan
    import pulumi

    from ..agent.model.settings import Limits
    from ..agent.model.task_dump import TaskDump
    from ..agent.record.record import RecordView, ViewRequest
    from ..outputs import CostSummary
    from ..plan.inventory import Inventory, PlaceRef
    from ..plan.plan import Change, Plan
    from ..plan.retained_data import RetainedData
    from ..plan.scheduler import Machine
    from ..spec.cluster import ClusterSpec
    from .connection import Connect, Connection

CONTROLLER = "controller"
"""The controller's hostname. No task has it: a task's hostname ends with a number."""

GONE = "gone"
"""The status of a machine that no longer exists."""

NOT_CREATED = "not created"
"""The status of a machine that has never existed."""


class ClusterRef(TypedDict):
    """The cluster that a call is about.

    The id alone decides what belongs to it. Project, stack and name are what people read: another login may use the same, and
    `pulumi stack rename` changes them.
    """

    id: str
    """No other cluster has it. Empty in a preview of a cluster that does not exist yet."""
    owner: str
    """Who created the cluster: `user@computer`."""
    backend: str
    project: str
    stack: str
    name: str
    home: str
    """Where the cluster is: for `local` a folder, for `docker` the address of the engine that manages the Swarm, for `ec2`
    the region and the cluster's folder name."""


IDENTITY = ("id", "owner", "backend", "project", "stack", "name")
"""The members of a reference that `--json` prints."""


class Retain(TypedDict):
    """What `delete_all` retains, beside the user's own copy of the record: `record` is in a place that outlives the machines."""

    volumes: bool
    record: bool
    is_elsewhere: NotRequired[bool]
    """Whether another backend has the record now: then that of this place is not retained."""


class TaskProps(TypedDict):
    """The inputs of one task: what its engine needs to run it."""

    cluster: ClusterRef
    token: str
    hostname: str
    job: str
    index: int
    machine: str
    """Empty where the engine places the task."""
    limits: dict[str, Any]
    """As JSON of `Limits`."""
    gpus: list[str]
    port: int
    grace: float
    agent: str
    """The version of the agent; another version restarts the task's launcher."""
    run: str
    """The id of the run that is submitted next. Another one alone changes no task."""
    container: Mapping[str, Any]
    """The task's part of `Rendered`, in one of the backend's types. Empty where tasks are processes."""
    dependencies: Mapping[str, Any]
    """What `Planner.register_dependencies` has created for it, in another one of them."""
    is_replaced: NotRequired[bool]
    """Of a task that is deleted: it is created again next, so it stays a task of the run."""


def limits_of(props: TaskProps) -> "Limits":
    """What the task may use."""
    from ..agent.model.settings import Limits

    return Limits.from_dict(props["limits"])


def launcher_settings(props: TaskProps) -> dict[str, Any]:
    """What a launcher gets on every engine: members of `agent.model.settings.TaskSettings`, as JSON."""
    task = {key: props[key] for key in ("hostname", "job", "index")}
    return {**task, "limits": limits_of(props).to_dict()}


def shown_limits(limits: "Limits") -> dict[str, str]:
    """As a preview prints them when they change."""
    texts = {name: f"{value:g}" if value else "" for name, value in vars(limits).items()}
    return {**texts, "memory": text_of_size(limits.memory) if limits.memory else ""}


class RunProps(TypedDict):
    """The inputs of the run: what the tasks run, and where its code and its secrets are read from."""

    cluster: ClusterRef
    token: str
    run: dict[str, Any]
    code_folder: str
    code_without: list[str]
    secrets: dict[str, str]
    container: Mapping[str, Any]
    """The controller's part of `Rendered`. Empty where the controller is a process."""
    dependencies: Mapping[str, Any]
    """As those of a task of the first job."""


class TaskOutputs(TypedDict):
    """What a task has only once it exists."""

    created_at: str


class RunOutputs(TypedDict):
    """What a run has only once the controller has accepted it."""

    submitted_at: str
    train_dir: NotRequired[str]


class EngineTask(NamedTuple):
    """What the engine itself reports of a task's launcher."""

    alive: bool
    container: str
    state: str
    """`scheduled`, `pulling` or `starting` before it runs; otherwise the engine's name of the state, such as `rejected`."""
    reason: str = ""
    """Why it does not run, in the engine's words."""


class ObservedMachines(NamedTuple):
    """What is observed of a cluster's machines."""

    statuses: Mapping[str, str] = MappingProxyType({})
    """Machine to its status, where that is not `others`."""
    others: str = "connected"
    """The status of the machines that `statuses` does not list."""
    addresses: Mapping[str, str] = MappingProxyType({})
    """Machine to its public address, where it has one."""
    failures: Mapping[str, str] = MappingProxyType({})
    """Machine to the reason why its last boot failed; from the second line on, the end of its console."""
    remedies: Mapping[str, str] = MappingProxyType({})
    """Machine that does not respond to what the user can do, so that its tasks start elsewhere."""
    problems: tuple[str, ...] = ()
    """Why machines could not be observed, in sentences."""

    def status(self, machine: str) -> str:
        """The status of one machine."""
        return self.statuses.get(machine, self.others)


@dataclass(frozen=True)
class ObservedState:
    """One observation of a cluster."""

    at: float
    view: "RecordView"
    """The controller's view, or the record's where the controller does not respond."""
    controller_silent_since: float | None
    """When the controller last responded; None while it responds."""
    engine: Mapping[str, EngineTask] | None
    """What the engine reports of each task; None when it does not respond. Ask it before the controller: else tasks may seem lost."""
    record_folder: str = ""
    """Where the record is, for people."""
    machines: ObservedMachines = field(default_factory=ObservedMachines)
    cost: "CostSummary | None" = None
    """The output `cost`, but for what the plan knows; None where nothing is billed."""
    problems: Sequence[str] = field(default_factory=tuple)
    """What is wrong, in sentences: with machines, and else."""
    missing: Sequence[str] = field(default_factory=tuple)
    """What the cluster should have and does not, and nothing makes again by itself, each as a noun with its article."""
    not_stored: str = ""
    """Why the record is not where it outlives the machines, and what to do, in sentences; empty where it is, or need not be."""
    unreachable_remedy: str = ""
    """What to do where the place does not respond, beside what `problems` say."""
    installing: str = ""
    """`installing tensorflow==2.15.*, 40s` while an update installs the packages of `requirements`, before the run is submitted."""

    @property
    def is_gone(self) -> bool:
        """Whether the place responds and has nothing of the cluster that could run: no controller, no task, no machine."""
        if self.controller_silent_since is None or self.problems:
            return False
        statuses = {self.machines.others, *self.machines.statuses.values()}
        return not self.engine and (self.engine == {} or statuses <= {GONE, NOT_CREATED})


class DiscoveredCluster(NamedTuple):
    """One cluster that was discovered by its labels, tags or folders alone."""

    cluster: ClusterRef
    has: Mapping[str, int]
    """Kind of resource to how many there are."""
    since: float = 0.0
    """When the oldest of them was created, in seconds since 1970; 0 where that is not known."""
    per_hour: float | None = 0.0
    """USD; None where a price is unknown."""


OK, WARN, FAIL = "ok", "warn", "fail"
"""The result of a check."""


class Check(NamedTuple):
    """The result of checking one thing that a backend needs."""

    what: str
    state: str
    detail: str
    remedy: str = ""
    """What to do, where it is not."""


InventoryT = TypeVar("InventoryT", bound="Inventory")
"""What a backend reports that exists: a subclass of `Inventory` has what only its own planner reads."""


@dataclass(frozen=True)
class Replacement(JsonData):
    """An update replaces machines of a run: before that it is stopped, and its record is brought to this computer. It continues on the
    new machines."""

    machines: tuple[str, ...] = ()
    """The ids of the machines. Empty where an earlier update has stopped the run, and has not submitted it again."""
    keeps_train_dir: bool = False
    """Whether the new machines see the run's `train_dir` too."""
    continues: bool = True
    """Whether this run, or one that resumes it, is submitted then."""


@dataclass(frozen=True)
class Rendered:
    """What a plan becomes on one backend. Made once by `Planner.render`."""

    tasks: Mapping[str, JsonData] = field(default_factory=dict)
    """Hostname to what `TaskProps.container` has as JSON. Empty where tasks are processes."""
    controller: JsonData | None = None
    """What `RunProps.container` has as JSON; None where the controller is a process."""
    changes: "tuple[Change | str, ...]" = ()
    """What an update would change in tasks and machines that exist; and what it costs."""
    retained: "tuple[RetainedData, ...]" = ()
    """Each place that has data of the cluster or will have it, and whether `pulumi destroy` keeps it."""
    replacement: Replacement | None = None
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
        """Refuse a plan that cannot work, before anything is created; the warnings about the rest. Least: what `backends.validate` has.

        Raises:
            SpecError: with the argument, what is wrong with it, and what to do.
        """

    def render(self, cluster: ClusterRef, spec: "ClusterSpec", plan: "Plan", inventory: InventoryT) -> Rendered:
        """What each task's process, service or instance will be, and what that changes. Least: nothing.

        Raises:
            SpecError: an argument is not valid.
        """
        return Rendered()

    def register_dependencies(self, request: DependencyRequest[InventoryT]) -> Mapping[str, Mapping[str, Any]]:
        """Register, with Pulumi, what tasks and controller need before they can be created. Job to its `TaskProps.dependencies`, with
        Pulumi's outputs among the values. Least: nothing."""
        return {}


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


class TaskRunner(Protocol):
    """Creates, updates and deletes tasks, submits runs, and observes them. Called by Pulumi's providers and by the command."""

    def create_task(self, props: TaskProps) -> TaskOutputs:
        """Create a task, or adopt the existing one of that name."""

    def update_task(self, old: TaskProps, props: TaskProps) -> TaskOutputs:
        """Give an existing task other limits."""

    def delete_task(self, props: TaskProps) -> None:
        """Stop and remove a task."""

    def task_exists(self, props: TaskProps) -> bool:
        """Whether the task exists: it runs, or has ended as it should."""

    def submit_run(self, props: RunProps) -> RunOutputs:
        """Make this the cluster's current run."""

    def run_is_current(self, props: RunProps) -> bool:
        """Whether the controller exists and this is its current run."""

    def stop_run(self, props: RunProps) -> None:
        """Stop the run."""

    def observe(self, cluster: ClusterRef, token: str, query: "ViewRequest", is_preview: bool = False) -> ObservedState:
        """Observe the cluster once; never raises because something is gone: that is what it reports. For a preview it writes
        nothing, not even the user's copy of the record."""

    def delete_unlisted(self, cluster: ClusterRef, token: str, hostnames: Sequence[str]) -> None:
        """Stop and remove at once every task that is not listed."""

    def delete_all(self, cluster: ClusterRef, token: str, retain: Retain) -> str:
        """Remove all that belongs to the cluster, even after an interrupted update; a sentence about what is retained."""


class Route(NamedTuple):
    """How this computer connects to a task."""

    host: str
    port: int
    """The task's address, as its peers reach it."""
    connect: "Connect"
    direct: bool = False
    """Whether this computer reaches that address too."""


class TaskUsage(NamedTuple):
    """What a task uses now: processors, such as 1.5, and bytes of memory."""

    cpus: float
    memory: int


def _unsupported(cluster: ClusterRef) -> BackendError:
    return BackendError(f"the backend {cluster['backend']} does not support this")


class TaskAccess(Protocol):
    """How a user reaches one task. It needs no Pulumi, and does not wait for the stack's lock. Each method raises NotFound for a
    hostname that no task has. Least: `stop_training` and `dumps`; the others raise BackendError."""

    def restart_effect(self, cluster: ClusterRef, hostname: str, replace: bool) -> str:
        """What `restart` does to the task and its data, in sentences. BackendError: the task has ended, so it has no effect."""
        raise _unsupported(cluster)

    def restart(self, cluster: ClusterRef, hostname: str, replace: bool = False) -> None:
        """Restart a task on its machine, with `replace` without the data that only this task has; return when it runs again. It does
        not count as a failure. BackendError if it has ended."""
        raise _unsupported(cluster)

    def lost_effect(self, cluster: ClusterRef, machine: str) -> str:
        """What `confirm_lost` does, and what the user promises with it, in sentences. BackendError: it has no effect; with what to do
        instead."""
        raise _unsupported(cluster)

    def confirm_lost(self, cluster: ClusterRef, machine: str) -> None:
        """Store, at the place, the user's word that a machine does not run its tasks any more, so that an update moves them."""
        raise _unsupported(cluster)

    def stop_training(self, cluster: ClusterRef, time_limit: float = 0.0) -> None:
        """Have the controller stop all tasks but auxiliary ones; return at once. `time_limit` is that of the run, in seconds, where it
        is the reason. Unreachable if the controller does not respond."""

    def execute(self, cluster: ClusterRef, hostname: str, command: Sequence[str]) -> int:
        """Run a command where the task's program runs, with the streams and the terminal of this process; its exit code."""
        raise _unsupported(cluster)

    def ssh(self, cluster: ClusterRef, machine: str) -> list[str]:
        """The command that opens a shell on a machine, or on that of a task. BackendError: none does; with what to use instead."""
        raise _unsupported(cluster)

    def route(self, cluster: ClusterRef, hostname: str, port: int = 0) -> Route:
        """How this computer connects to a port of a task; 0 is the port of its address. BackendError if it does not listen now."""
        raise _unsupported(cluster)

    def files(self, cluster: ClusterRef, hostname: str, base: str, path: str) -> "Connection":
        """A connection that brings the agent's archive of a path, read as the user of the task's program. BackendError if the task does
        not run now."""
        raise _unsupported(cluster)

    def dumps(self, cluster: ClusterRef, hostnames: Collection[str]) -> "Mapping[str, TaskDump]":
        """What the programs of these tasks do now; without those whose launcher is silent. BackendError if the controller is."""

    def usage(self, cluster: ClusterRef) -> Mapping[str, TaskUsage]:
        """What each task uses, by hostname; without those that do not run or cannot be measured from this computer."""
        raise _unsupported(cluster)


class Discovery(NamedTuple):
    """What a backend reports without a cluster. A place is as in `ClusterRef.home`; empty for where its own tools would search."""

    discover: Callable[[str], Sequence[DiscoveredCluster]]
    """All clusters at a place; raises Unreachable where the place does not respond."""
    health: Callable[[str], Sequence[Check]]
    """Whether the backend has what it needs. It calls other services, so it takes some seconds."""


def place_title(place: "PlaceRef") -> str:
    """A place for people: its name, and the beginning of its id."""
    return f"{place['name']} ({place['id'][:12]})" if place["name"] else place["id"]


def same_cluster(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two references are to one cluster at one place; its stack may have been renamed."""
    return all(old.get(key) == new.get(key) for key in ("id", "backend", "home"))
