"""The contract of a backend: the hands that make a plan stand, take it away, and look at it.

A backend keeps nothing in memory: every call gets the `Cluster` that it is about, and what it needs beside that. Hands that
take something away take "not there" as success. What is handed in and out is plain JSON, because it goes through Pulumi's
state.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from ..errors import SpecError
from ..placement import Machine
from ..plan import Plan
from ..spec import ClusterSpec

BACKENDS = ("local", "docker", "ec2")
"""The names that `tfdeploy:backend` takes."""

KEEPER = "keeper"
"""The keeper's hostname, which is no task's: those end with a number."""


GONE = "gone"
"""The status of a machine that is no more."""


class Cluster(TypedDict):
    """Which cluster a call is about."""

    backend: str
    project: str
    stack: str
    name: str
    home: str
    """Where the cluster is: for `local` a folder, for `docker` the address of the engine that manages the Swarm, for `ec2`
    the region and the cluster's own name, by which its machines are found."""


class Keep(TypedDict):
    """What of a cluster stays when it is taken away, beside the copy of its record at home."""

    volumes: bool
    record: bool
    """Where it outlives the machines, in a place of its own."""


class TaskProps(TypedDict):
    """What the engine must know of one task."""

    cluster: Cluster
    token: str
    hostname: str
    job: str
    index: int
    machine: str
    memory: int
    cpus: float
    gpus: str
    port: int
    grace: float
    agent: str
    """The version of the agent: another one starts the task's launcher again."""
    container: dict[str, Any]
    """What only a container has, as `Backend.containers` says it; nothing where tasks are processes."""
    supplies: dict[str, str]
    """What `Backend.supply` had made for it."""


class RunProps(TypedDict):
    """What is to run, and where its code and secrets come from."""

    cluster: Cluster
    token: str
    run: dict[str, Any]
    code_folder: str
    code_without: list[str]
    secrets: dict[str, str]
    container: dict[str, Any]
    """The keeper's, as `Backend.containers` says it."""
    supplies: dict[str, str]


@dataclass(frozen=True)
class EngineTask:
    """What the engine itself says of a task's launcher."""

    alive: bool
    container: str
    word: str
    """`scheduled`, `pulling` or `starting` while it is on its way; else the engine's own word, such as `rejected`."""
    reason: str = ""
    """Why it is not further, in the engine's words."""


@dataclass(frozen=True)
class Sight:
    """One look at a cluster."""

    at: float
    view: Mapping[str, Any]
    """The keeper's view, or the record's where the keeper does not answer (`agent.record.Record.view`)."""
    keeper_silent_since: float | None
    """When the keeper was last known to live; None while it answers."""
    engine: Mapping[str, EngineTask] | None
    """What the engine says of each task; None when the engine does not answer."""
    kept_at: str = ""
    """Where the record is, for people."""
    machines: Mapping[str, str] = field(default_factory=dict)
    """The status of each machine whose status is not `others`."""
    problems: Sequence[str] = field(default_factory=tuple)
    """What else is wrong, in sentences."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """The public address of each machine that has one."""
    others: str = "connected"
    """The status of machines that are not among these."""
    cost: Mapping[str, Any] = field(default_factory=dict)
    """The component's output `cost`, and `machines`: each machine's `per_hour` and `spent`. Nothing where nobody is paid."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Machine to why its last boot failed; from the second line on, the end of what it wrote meanwhile."""


@dataclass(frozen=True)
class Found:
    """What one cluster has, found by our labels, tags or folders alone: nothing of it need be known before."""

    cluster: Cluster
    has: Mapping[str, int]
    """Kind of thing to how many there are."""
    since: float = 0.0
    """When the oldest of them was made, in seconds since 1970; 0 where that is not told."""
    per_hour: float | None = 0.0
    """USD; None where a price is unknown."""


OK, WARN, FAIL = "ok", "warn", "fail"
"""What a check comes to."""


@dataclass(frozen=True)
class Check:
    """Whether something that a backend needs is as it should be."""

    what: str
    state: str
    detail: str
    remedy: str = ""
    """What would do, where it is not."""


class Backend(Protocol):
    """The hands. `local`, `docker` and `ec2` each have one class of this shape."""

    heal: str
    """What a user types to bring back what died."""

    def cluster(self, project: str, stack: str, spec: ClusterSpec) -> Cluster:
        """The handle of a cluster, whether it stands or not."""

    def machines(self, cluster: Cluster, spec: ClusterSpec) -> Sequence[Machine]:
        """What tasks can stand on: machines that there are, or that are to be made."""

    def standing_on(self, cluster: Cluster) -> Mapping[str, str]:
        """Hostname to machine, of the tasks that stand."""

    def command(self, cluster: Cluster, spec: ClusterSpec) -> tuple[str, ...]:
        """The command that is asked for; without one, that of the image."""

    def image(self, spec: ClusterSpec) -> str:
        """What names the image of a run; empty where there is none, or only the default."""

    def check(self, cluster: Cluster, spec: ClusterSpec, plan: Plan, code_files: Sequence[str]) -> Sequence[str]:
        """Refuse what can be known not to work, before anything is made; the warnings about the rest.

        Raises:
            SpecError: with the argument, what is wrong with it, and what would do.
        """

    def folder(self, cluster: Cluster, spec: ClusterSpec, key: str, program: str) -> str:
        """`data_dir` or `train_dir` as the tasks will see it: absolute, or a URL; relative ones begin at `program`."""

    def containers(self, cluster: Cluster, spec: ClusterSpec, plan: Plan) -> Mapping[str, dict[str, Any]]:
        """Hostname to what only a container has, `keeper` to the keeper's; nothing where tasks are processes.

        Raises:
            SpecError: an argument cannot be what the user wants.
        """

    def changes(
        self, cluster: Cluster, spec: ClusterSpec, plan: Plan, containers: Mapping[str, dict[str, Any]]
    ) -> Sequence[str]:
        """What the plan changes in what stands, what that does to it, and what it costs, in sentences."""

    def unneeded(self, cluster: Cluster, plan: Plan) -> frozenset[str]:
        """Machines of the plan that are gone and need not be made again, because the run is over."""

    def supply(
        self,
        name: str,
        cluster: Cluster,
        spec: ClusterSpec,
        plan: Plan,
        token: Any,
        secrets: Mapping[str, Any],
        opts: Any,
    ) -> Mapping[str, Any]:
        """Register, with Pulumi, what tasks and keeper need before they stand; name to the output that refers to it.

        `token` and `secrets` are Pulumi's outputs, `opts` its `ResourceOptions`.
        """

    def stand(self, props: TaskProps) -> Mapping[str, Any]:
        """Make a task stand, or adopt the one of that name; what only the engine knows of it."""

    def change(self, old: TaskProps, props: TaskProps) -> Mapping[str, Any]:
        """Give a standing task other limits."""

    def standing(self, props: TaskProps) -> bool:
        """Whether the task still stands: runs, or has ended as it should."""

    def take_away(self, props: TaskProps) -> None:
        """Stop and remove a task."""

    def give(self, props: RunProps) -> Mapping[str, Any]:
        """Make this the cluster's run; what only the backend knows of it."""

    def given(self, props: RunProps) -> bool:
        """Whether the keeper is there and this is its run."""

    def dismiss(self, props: RunProps) -> None:
        """Stop the job."""

    def sweep(self, cluster: Cluster, token: str, hostnames: Sequence[str]) -> None:
        """Stop at once every task that is not listed."""

    def clear(self, cluster: Cluster, token: str, keep: Keep) -> str:
        """Remove all that is the cluster's, however it came to be left; say in a sentence what is kept, and where."""

    def look(self, cluster: Cluster, token: str, ask: Mapping[str, Any]) -> Sight:
        """One look; never raises because something is gone: that is what it reports."""


def as_given(value: Any) -> Any:
    """As it was before it went through Pulumi's state, where every number is a float; without the provider itself."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: as_given(item) for key, item in value.items() if key != "__provider"}
    return [as_given(item) for item in value] if isinstance(value, list) else value


def load(name: str) -> Backend:
    """The backend of that name.

    Raises:
        SpecError: there is none, or the packages that it needs are not installed.
    """
    backend: Backend = _module(name, name).BACKEND
    return backend


def search(name: str, place: str = "") -> Sequence[Found]:
    """What clusters the backend of that name has at a place, as `Cluster.home` says where: an engine's address, a region;
    nothing for where its own tools would look.

    Raises:
        SpecError: there is no such backend, the packages that it needs are not installed, or it is not set up.
        Unreachable: nobody answers there.
    """
    found: Sequence[Found] = _module(name, f"{name}.search").found(place)
    return found


def health(name: str, place: str = "") -> Sequence[Check]:
    """Whether the backend of that name has what it needs; `place` as for `search`. It asks others, so it takes its time.

    Raises:
        SpecError: there is no such backend, or the packages that it needs are not installed.
    """
    checks: Sequence[Check] = _module(name, f"{name}.health").health(place)
    return checks


def _module(name: str, path: str) -> Any:
    if name not in BACKENDS:
        raise SpecError("backend", f"{name!r} is unknown", f"It takes one of: {', '.join(BACKENDS)}.")
    try:
        return importlib.import_module(f"{__package__}.{path}")
    except ModuleNotFoundError as error:
        wrong = f"{name!r} needs the package {error.name}, which is not installed"
        remedy = f"Install what it needs: pip install 'pulumi-tfdeploy[{name}]'; in a clone: make setup-{name}."
        raise SpecError("backend", wrong, remedy) from None
