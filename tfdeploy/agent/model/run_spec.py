"""The specification of a run: what the controller gets from the plan. Pure."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping

from .json_data import JsonData

ANY_INDEX = "**/*.index"

DEFAULT_PATTERNS = (
    "**/saved_model.pb",
    "**/*.keras",
    "**/checkpoint",
    ANY_INDEX,
    "**/*.h5",
    "**/*.hdf5",
    "**/*.weights.json",
)
"""Artifacts unless the user names others."""

_ALWAYS = ("id", "jobs", "command", "code", "env", "secret_env")
"""Members of a run that a state of Pulumi always has."""


@dataclass(frozen=True)
class TaskSpec(JsonData):
    """One task of the run."""

    hostname: str
    job: str
    index: int

    @classmethod
    def of(cls, hostname: str) -> "TaskSpec":
        """The task of this hostname, such as gpu-worker-0."""
        stem, _, index = hostname.rpartition("-")
        return cls(hostname, stem.replace("-", "_"), int(index))


@dataclass(frozen=True)
class RestartPolicy(JsonData):
    """Which failures of a job's tasks are retried."""

    maximum: int = 0
    """Restarts per task."""
    backoff: float = 0.0
    """Seconds before the second restart; doubled for each further one. The first is immediate."""
    on: List[str] = field(default_factory=list)
    """`any`, `oom`, `signal`, an exit code, or a range of exit codes such as `1-127`."""


@dataclass(frozen=True)
class RunJob(JsonData):
    """One of TensorFlow's jobs."""

    env: Dict[str, str] = field(default_factory=dict)
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    command: List[str] = field(default_factory=list)
    """Empty: the run's command."""
    required: bool = True
    """Whether the failure of a task fails the run."""
    service: bool = False
    """Its tasks start before the others, have no part in the result or in `TF_CONFIG`, and are stopped with the run."""
    unlisted: bool = False
    """No other task gets the addresses of its tasks: they start, end, and are added and removed while the others run."""


@dataclass(frozen=True)
class Condition(JsonData):
    """A comparison of a metric with a number. When all conditions of a run hold, the run has succeeded."""

    metric: str
    pattern: str
    """The metric's pattern."""
    comparison: str
    """One of `until.COMPARISONS`."""
    threshold: float


@dataclass(frozen=True)
class RunSpec(JsonData):
    """One run. Its `id` is a hash of what determines the training; counts, limits and policies can change within a run."""

    id: str
    tasks: List[TaskSpec]
    jobs: Dict[str, RunJob]
    command: List[str] = field(default_factory=list)
    code: str = ""
    """The name of the code archive; empty for none."""
    env: Dict[str, str] = field(default_factory=dict)
    secret_env: List[str] = field(default_factory=list)
    """The names of further variables, which have their values in the folder of secrets."""
    requirements: List[str] = field(default_factory=list)
    path: List[str] = field(default_factory=list)
    """Folders that come first in the tasks' `PATH`."""
    data_dir: str = ""
    train_dir: str = ""
    """In the plan the folder of all runs; in the controller's state the run's own folder."""
    restored_run: str = ""
    """A run that has moved: the one with its artifacts. They fill `train_dir` where it is empty and this run has none."""
    context: str = ""
    resume_from: str = ""
    serve: bool = False
    master: bool = False
    """`TF_CONFIG` calls the chief `master`."""
    flags: str = "auto"
    """Whether the four flags are appended to the command: a rule of `flags`."""
    success: str = ""
    worker_timeout: float = 0.0
    """Seconds that the other workers have after the success of the run to end by themselves."""
    evaluator_timeout: float = 0.0
    """Seconds that the evaluator has after the success of the run to evaluate the last checkpoint."""
    grace: float = 0.0
    """Seconds between SIGTERM and SIGKILL."""
    start_timeout: float = 0.0
    """Seconds that the first start barrier waits for all tasks; 0 for any time."""
    metrics: Dict[str, str] = field(default_factory=dict)
    """Name to the pattern that is searched in the output."""
    until: List[Condition] = field(default_factory=list)
    """The run succeeds as soon as all of these hold; with none, when its tasks have succeeded."""
    budget: float = 0.0
    """The highest cost of the machines, in USD; 0 for none."""
    cost_per_hour: float = 0.0
    """What the planned machines cost, in USD, as far as their prices are known."""
    cost_is_maximum: bool = False
    """Whether the bill may be lower, as with spot instances."""
    unpriced: List[str] = field(default_factory=list)
    """One text for each planned machine with an unknown price: the parts without a price."""
    cost_to_end: float = 0.0
    """What the machines cost from the end of the run until they have terminated themselves, in USD."""
    max_workers: int = 0
    """In an elastic run: up to so many workers may exist. Every task knows the addresses of all of them. 0: the run is not elastic."""
    worker_port: int = 0
    """In an elastic run: the port of worker 0 that the user has chosen; worker 1 has the next one. 0 for any."""
    artifacts: List[str] = field(default_factory=lambda: list(DEFAULT_PATTERNS))
    """What is uploaded of `train_dir` when the run ends: glob patterns."""
    checkpoint_upload_interval: float = 0.0
    """The fewest seconds between two uploads of the newest checkpoint while the run trains; 0: only when it ends."""
    content_id: str = ""
    """The id that the plan made of all but the values of `secret_env`; empty where `id` is that one."""

    def is_service(self, job: str) -> bool:
        """Whether this is a job of services."""
        return job in self.jobs and self.jobs[job].service

    def is_unlisted(self, job: str) -> bool:
        """Whether no other task gets the addresses of this job."""
        return job in self.jobs and self.jobs[job].unlisted

    def to_inputs(self) -> Dict[str, Any]:
        """As JSON for a state of Pulumi, which shows all of it for each change: without members that have their default, and with the
        names of tasks alone."""
        defaults = RunSpec("", [], {}).to_dict()
        needed = {name: value for name, value in self.to_dict().items() if name in _ALWAYS or value != defaults[name]}
        return {**needed, "tasks": [task.hostname for task in self.tasks]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RunSpec":
        """From JSON; a task may be its hostname."""
        tasks = [vars(TaskSpec.of(task)) if isinstance(task, str) else task for task in data["tasks"]]
        return super().from_dict({**data, "tasks": tasks})
