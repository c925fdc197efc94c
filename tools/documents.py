"""The types of what `--json` prints, for docs/json.md. tests/unit/cli/test_documents.py compares them with what is printed."""

from typing import Any, TypedDict

from tfdeploy.outputs import ArtifactRow, CostSummary, MachineRow, TaskRow


class ClusterIdentity(TypedDict):
    """Which cluster it is."""

    id: str
    """The id, which no other cluster has."""
    owner: str
    """Who created the cluster: `user@computer`."""
    backend: str
    """`local`, `docker`, `ec2` or `kubernetes`."""
    project: str
    """The project of its stack."""
    stack: str
    """The name of its stack."""
    name: str
    """The name of the cluster."""


class ClusterOutputs(TypedDict):
    """A cluster, with the state of its run now."""

    state: str
    """The state of the run, such as `running`."""
    reason: str
    """Why it has that state; empty where there is nothing to add."""
    run: str
    """The id of the run; empty for none."""
    decided: bool
    """Whether the run has a result. Some of its tasks may still be ending."""
    tasks: list[TaskRow]
    """As the output `tasks`."""
    machines: list[MachineRow]
    """As the output `machines`."""
    metrics: dict[str, Any]
    """Each metric to its last value; null for none."""
    endpoints: dict[str, str]
    """Hostname to `host:port` of each task that may listen."""
    train_dir: str
    """The folder of the run, as its tasks have it."""
    artifacts: list[ArtifactRow]
    """As the output `artifacts`."""
    is_uploading: bool
    """Whether artifacts of the run are about to arrive on this computer."""
    cost: CostSummary
    """As the output `cost`."""
    observed_at: str
    """The time of the observation (UTC)."""


class ListedCluster(TypedDict):
    """A cluster in the list of all."""

    state: str
    """The state of its run; `gone` if nothing of the cluster exists, `destroyed` after `pulumi destroy`."""
    reason: str
    """Why it has that state; empty where there is nothing to add."""
    run: str
    """The id of its run; empty for none."""
    created: float
    """When it was created, in seconds since 1970."""
    destroyed: float | None
    """When it was destroyed, likewise; null while it exists."""
    cost: CostSummary
    """As the output `cost`."""
    login: str
    """The login of Pulumi whose stack it is."""
    folder: str
    """The folder of its program."""


class RunDocument(TypedDict):
    """A run that a record has."""

    cluster: str
    """The title of its cluster."""
    backend: str
    """Where it ran."""
    run: str
    """Its id."""
    submitted_at: float
    """When it was submitted, in seconds since 1970."""
    ended_at: float | None
    """The end of its last task, likewise; null while it runs."""
    tasks: dict[str, int]
    """Job to the number of its tasks."""
    changed: list[str] | None
    """What differs from the run before it; null for the first run."""
    current: bool
    """Whether it is the current run of a cluster that exists."""
    result: str
    """How it ended, or the state of the current run, as `tfdeploy status` has it."""
    reason: str
    """Why it ended so; empty while it runs."""
    metrics: dict[str, Any]
    """Each metric to its last value; null for none."""


class EventSentence(TypedDict):
    """An event. What does not belong to its kind is missing, but `at`, `kind`, `task`, `attempt` and `reason`."""

    sentence: str
    """The event in words."""


class ResultReason(TypedDict):
    """How a run ended."""

    reason: str
    """Why, in words."""


class Exit(TypedDict):
    """How a program ended."""

    code: int
    """Its exit code; 128 + n for signal n."""
    signal: str
    """The name of the signal that killed it; empty for none."""
    out_of_memory: bool
    """Whether it had used more memory than it may."""


class StepProgress(TypedDict):
    """How far the program of a task is, by its log."""

    step: float | None
    """The last step; null for none."""
    steps_per_second: float | None
    """Its speed; null where it is not known."""
    at: float | None
    """When it made the last step, in seconds since 1970; null for none."""


class DumpedTask(TypedDict):
    """A task, and what its program does."""

    hostname: str
    """The name of the task."""
    status: str
    """The status of the task."""
    progress: StepProgress
    """How far it is."""
    dump: dict[str, Any] | None
    """What its launcher has sent, as below; null where the launcher does not respond."""
