"""The states of tasks and runs, and what the controller remembers of them. Pure."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from .json_data import JsonData, SparseJsonData
from .run_spec import RunSpec

SCHEDULED, STARTING, WAITING, RUNNING = "scheduled", "starting", "waiting", "running"
SUCCEEDED, FAILED, KILLED, OUT_OF_MEMORY = "succeeded", "failed", "killed", "out of memory"
RESTARTING, INTERRUPTED, STOPPED, LOST = "restarting", "interrupted", "stopped", "lost"
UNREACHABLE, UNKNOWN = "unreachable", "unknown"
PULLING = "pulling"

ENGINE_STARTING = (SCHEDULED, PULLING, STARTING)
"""What an engine reports of a task before its launcher runs."""

DEAD = frozenset({FAILED, KILLED, OUT_OF_MEMORY})
"""States of a task that failed and is not restarted."""

FINAL = DEAD | {SUCCEEDED, STOPPED}
"""States of a task that this run does not start again."""

TENSORBOARD, TENSORBOARD_PORT = "tensorboard", 6006
"""The auxiliary job, and its usual port."""

EVALUATOR = "evaluator"
"""The only job of which a failure may leave the run as it is: the others train."""

GPU_WORKER = "gpu_worker"
WORKERS = ("worker", GPU_WORKER)
"""The jobs that form TensorFlow's job `worker`, in the order of their tasks there. TensorFlow does not know which have GPUs."""

RUN_FINISHED, RUN_FAILED, BY_REQUEST = "run finished", "run failed", "by request"
AT_TIME_LIMIT, AT_BUDGET, TO_MOVE = "time limit", "budget", "to be moved"
"""Why a task was stopped."""

TASKS_SUCCEEDED, TASK_FAILED, STARTUP_TIMEOUT, STOP_REQUESTED = (
    "tasks_succeeded",
    "task_failed",
    "startup_timeout",
    "stop_requested",
)
LAUNCHERS_LOST, ENDED_EARLY, TIME_LIMIT = "launchers_lost", "ended_early", "time_limit"
DECIDERS_REMOVED = "deciders_removed"
UNTIL, BUDGET, MOVED = "until", "budget", "moved"
"""Why a run ended."""


@dataclass(frozen=True)
class Ended(JsonData):
    """How a task's program ended: as its launcher has seen it, and as states, events and results have it."""

    code: int
    """128 + n for signal n."""
    signal: str = ""
    """The signal's name."""
    out_of_memory: bool = False
    cause: str = ""
    """Why the launcher ended it; empty when it ended by itself."""
    notice: str = ""
    """Why the launcher was interrupted: the machine is about to be shut down."""
    attempt: int = 0
    at: float = 0.0
    """In seconds since 1970, by the clock of its machine."""
    ran_seconds: float = 0.0
    """How long it ran, by a clock that does not step."""
    age: float = field(default=0.0, compare=False)
    """Seconds from the end to the report, by a clock that does not step; -1 where the launcher did not see the end itself."""
    killed: List[str] = field(default_factory=list)
    """After a success: the command lines of processes that the program had left behind and that its launcher has killed."""
    unstored: List[str] = field(default_factory=list)
    """After a success: models and checkpoints that the program has written into its working directory."""

    @property
    def state(self) -> str:
        """The final state of a task that ends so and is not restarted."""
        if self.code == 0:
            return SUCCEEDED
        if self.out_of_memory:
            return OUT_OF_MEMORY
        return KILLED if self.signal else FAILED


@dataclass(frozen=True)
class LauncherReport(SparseJsonData):
    """A launcher's state. Equal ones may differ in what grows with time alone.

    A report of a new `instance` may have `run_id`, `attempt` and an `exit`: the program's end was stored on disk by the launcher
    before it, which was killed before it could report. The end counts as if that launcher had reported it.
    """

    hostname: str = ""
    instance: str = ""
    """A new one for each launcher; empty before the first one."""
    container: str = ""
    machine: str = ""
    host: str = ""
    port: int = 0
    created: float = 0.0
    run_id: str = ""
    """The run that it has prepared."""
    ready: bool = False
    attempt: int = 0
    """That of the program that runs, or ran last."""
    phase: str = "idle"
    """One of the phases of `sync`."""
    started: float = 0.0
    running_seconds: float = field(default=0.0, compare=False)
    """How long its program has run, by a clock that does not step; 0 while none runs."""
    exit: Optional[Ended] = None
    problem: str = ""
    """Why it cannot prepare the run or start the program, although it tries again; empty when nothing is wrong."""
    dropped_bytes: int = 0
    """Bytes of output that this instance could not store, as on a full disk. It only grows."""
    generation: int = 0
    """What the controller's orders gave this instance; 0 before its first order. A task's current launcher has the highest one. A
    report of another instance with a lower one, or of an instance that was replaced, is of a launcher that must end."""
    can_upload: bool = False
    """It uploads artifacts when an order asks for it."""
    is_listening: bool = False
    """The program of a service listens at the task's port."""
    restarted: List[Ended] = field(default_factory=list)
    """While the controller was away, these attempts have ended, and the launcher itself has begun the one after each."""


@dataclass
class TaskState(JsonData):
    """What the controller remembers of one task in one run. Times are seconds since 1970."""

    hostname: str
    job: str
    index: int
    state: str = SCHEDULED
    reason: str = ""
    """Why it was interrupted or stopped."""
    waiting_for: str = ""
    """While it waits: the hostname of the first task that is not ready."""
    attempt: int = 1
    failures: int = 0
    max_failures: int = 0
    restart_delay: float = 0.0
    """While it restarts: the seconds of its back-off."""
    not_before: float = 0.0
    """Its program is not started earlier: the end of the back-off."""
    user_action: str = ""
    """`restarted` or `replaced`: what the user has asked for, until the next launcher has reported."""
    report: LauncherReport = field(default_factory=LauncherReport)
    """The last one of its launcher, whatever run and attempt that is about."""
    host: str = ""
    port: int = 0
    """What its launcher has last reported for this run."""
    ready: bool = False
    """The launcher has the run's code and a port."""
    end: Optional[Ended] = None
    """How its program ended last; None while it runs, and where it was stopped."""
    started: float = 0.0
    ended: float = 0.0
    seen: float = 0.0
    """The time of its launcher's last report."""
    since: float = 0.0
    """When a report first had that the program runs, or that it has ended. By the controller's clock."""
    losses: int = 0
    """How many launchers in a row were lost with a running program."""
    fenced: List[str] = field(default_factory=list)
    """The identities of its earlier launchers. One that is still alive must exit."""
    generation: int = 0
    """That of its launcher: each further one has a higher one."""
    dropped_reported: int = 0
    """How much of the output that its launcher could not store the events contain."""
    decided: int = 0
    """The last attempt that did not follow from the end of the one before, but from a decision on the task or the run. What a launcher
    has started again by itself since an attempt before it does not count."""
    machine_ends: bool = False
    """It was interrupted because its machine is about to be shut down."""
    exits: bool = False
    """The last order told its launcher to exit: no later order reaches it."""
    at_rest: bool = False
    """Its launcher has reported, after the end of the task or of the run, that no program runs, and starts none."""

    @property
    def is_auxiliary(self) -> bool:
        """Whether it is not part of the training: not in the start barrier, not in the result, and not stopped by the result."""
        return self.job == TENSORBOARD

    @property
    def address(self) -> str:
        """`host:port`, as the other tasks reach it."""
        return f"{self.host}:{self.port}"

    @property
    def exit_code(self) -> Optional[int]:
        """With which its program ended last."""
        return self.end.code if self.end else None

    @property
    def signal(self) -> str:
        """The name of the signal that killed its program; empty for none."""
        return self.end.signal if self.end else ""


UPLOAD_WAITS, UPLOADING, UPLOADED, UPLOAD_LOST, UPLOAD_GIVEN_UP = "waits", "uploading", "uploaded", "lost", "given_up"
"""States of an upload: its launcher is asked after those of other machines; is asked to upload; has uploaded all; is silent, and may
come back; took too long, and is not asked any more."""


@dataclass
class MachineUpload(JsonData):
    """The upload of what a run has in `train_dir` on one machine, which the tasks of the machine share."""

    task: str
    """The hostname of the task with the launcher that uploads."""
    at: float
    """When it came into its state, in seconds since 1970."""
    state: str = UPLOADING


@dataclass(frozen=True)
class ReachedMetric(JsonData):
    """A metric with the value by which a condition of `until` held."""

    metric: str
    """The name of the metric."""
    value: float
    """Its value."""
    comparison: str
    """`>=`, `<=`, `>` or `<`."""
    threshold: float
    """The number that it was compared with."""
    task: str
    """The hostname of the task that has logged it."""
    attempt: int = 0
    """The number of the start of its program that has logged it."""
    step: Optional[int] = None
    """The step that the task had logged with it, or last before it; None if it had logged none."""


@dataclass(frozen=True)
class RunResult(JsonData):
    """How a run ended."""

    state: str
    """`succeeded`, `failed` or `stopped`."""
    cause: str
    """Why, in a word."""
    at: float
    """When, in seconds since 1970."""
    tasks: List[str] = field(default_factory=list)
    """The hostnames that decided it."""
    exit: Optional[Ended] = None
    """How the task ended that failed."""
    seconds: float = 0.0
    """How long the start barrier waited, or the time limit of the run."""
    count: int = 0
    """How many launchers in a row were lost."""
    reached: List[ReachedMetric] = field(default_factory=list)
    """The metrics by which the conditions of `until` held."""
    spent: float = 0.0
    """What the machines had cost when the budget was used up, in USD."""
    budget: float = 0.0
    """The budget, in USD."""


@dataclass
class FormerTask(JsonData):
    """What is known of a task that was removed, or that has not reported since the run before."""

    instance: str = ""
    """The identity of its launcher, which must not register again; another one may."""
    attempt: int = 0
    """Its last attempt in this run: if it is added again, its log has this attempt already. 0 if this run did not have it."""
    generation: int = 0
    """That of its launcher. If it is added again, its next launcher has a higher one."""
    seen: float = 0.0
    """The last report of a launcher that was not at rest when its task was removed, or the run before ended: while its machine does not
    respond, its program may still run. Else 0."""


@dataclass
class RunState(JsonData):
    """What the controller remembers of one run: its specification, its tasks, and its result once it has ended."""

    spec: RunSpec
    submitted_at: float
    tasks: Dict[str, TaskState] = field(default_factory=dict)
    address_book: Dict[str, str] = field(default_factory=dict)
    """Hostname to address. Empty until all training tasks are ready."""
    reserved: Dict[str, str] = field(default_factory=dict)
    """In an elastic run: hostname to address of each worker up to the maximum, but worker 0, whether it exists or not."""
    result: Optional[RunResult] = None
    waiting_since: float = 0.0
    """When the start barrier began."""
    has_started: bool = False
    """The start barrier was passed once. From then on a late task never ends the run."""
    restart_queue: List[str] = field(default_factory=list)
    """The hostnames of a rolling restart that are not done yet."""
    restarting_task: str = ""
    restart_from: float = 0.0
    """The rolling restart does not begin earlier."""
    former: Dict[str, FormerTask] = field(default_factory=dict)
    """Hostname to what is known of a task that was removed, or that has not reported since the run before."""
    stop_requested: bool = False
    """The user has stopped the run, auxiliary tasks included."""
    stopped_at: float = 0.0
    """When the user stopped the training, its time limit was over, its budget was used up, or a condition of `until` held; else 0. From
    then on no worker and no evaluator has time left."""
    reached: List[ReachedMetric] = field(default_factory=list)
    """The metrics by which all conditions of `until` held. The run ends when their tasks have reported after that."""
    reached_at: float = 0.0
    listening_since: float = 0.0
    """When the present controller began, or continued after a pause: silence before that is not the launchers'."""
    until_problems: List[str] = field(default_factory=list)
    """The conditions of `until` that cannot hold, as the events have them. Each is listed once."""
    uploads: Dict[str, MachineUpload] = field(default_factory=dict)
    """Machine to the upload of what the run has there; missing until all its training tasks there have ended."""
    undecided_since: float = 0.0
    """Since when a task that decides the result is missing and no other program trains, or since its last report after that; else 0."""
    upload_problem: str = ""
    """Why its machine cannot store the record where it outlives the machine; empty where it can, or need not."""
    cost_before: float = 0.0
    """What the machines of the cluster had cost at `cost_since`, in USD: also in earlier runs."""
    cost_since: float = 0.0
    """Until when `cost_before` counts: from then on the machines cost `cost_per_hour`."""
    moves: int = 0
    """How many times the record was given to a controller at another place. Of two records of one cluster, the one with more moves of
    its current run is newer."""
    has_arrived: bool = False
    """Whether the record has come from another place, or from machines that were replaced, and the run was not submitted since."""

    def __post_init__(self) -> None:
        self.waiting_since = self.waiting_since or self.submitted_at
        self.cost_since = self.cost_since or self.submitted_at
        self.has_started = self.has_started or self.barrier_passed
        self.tasks = self.tasks or {task.hostname: TaskState(**vars(task)) for task in self.spec.tasks}

    @property
    def training_tasks(self) -> List[TaskState]:
        """All tasks except auxiliary ones."""
        return [task for task in self.tasks.values() if not task.is_auxiliary]

    @property
    def services(self) -> List[TaskState]:
        """The tasks of services."""
        jobs = {name for name, job in self.spec.jobs.items() if job.service}
        return [task for task in self.tasks.values() if task.job in jobs] if jobs else []

    @property
    def barrier_passed(self) -> bool:
        """Whether all training tasks were ready at some moment, so that they may run."""
        return bool(self.address_book)

    @property
    def is_steady(self) -> bool:
        """Whether all tasks run or have ended, and nothing is about to change that but a report, a limit or the user."""
        is_ending = self.result is not None or bool(self.stopped_at or self.reached)
        is_calm = not is_ending and not self.restart_queue
        return is_calm and all(task.state == RUNNING or task.state in FINAL for task in self.tasks.values())

    @property
    def removed_attempts(self) -> Dict[str, int]:
        """Hostname to the last attempt of each task that was removed from this run."""
        removed = self.former.keys() - self.tasks.keys()
        return {hostname: self.former[hostname].attempt for hostname in removed if self.former[hostname].attempt}

    def has_had(self, hostname: str) -> bool:
        """Whether this is a task of the run, or was one."""
        is_planned = any(task.hostname == hostname for task in self.spec.tasks)
        return hostname in self.tasks or hostname in self.former or is_planned

    def seen(self, hostname: str) -> float:
        """The last report of this task's launcher, if its program may still run while its machine does not respond; else 0."""
        task = self.tasks.get(hostname)
        if task is not None and task.at_rest:
            return 0.0
        former = self.former.get(hostname, FormerTask())
        return (task.seen if task else 0.0) or former.seen

    def silent_seconds(self, task: TaskState, now: float) -> float:
        """For how long a controller has listened to a task's launcher in vain."""
        return now - max(task.seen, self.listening_since)

    def as_former(self, hostname: str) -> FormerTask:
        """What is known of this task when it is removed, or was before."""
        task = self.tasks.get(hostname)
        if task is None:
            return self.former.get(hostname, FormerTask())
        return FormerTask(task.report.instance, task.attempt, task.generation, self.seen(hostname))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "RunState":
        """From JSON. Fields of a newer version are ignored."""
        run = super().from_dict(data)
        if not data["tasks"]:  # all were removed
            run.tasks = {}
        return run


def continues(run: RunState) -> bool:
    """Whether a submission continues this run although it was stopped: its record has arrived from another place, or it was stopped
    only to be moved."""
    return run.has_arrived or (run.result is not None and run.result.cause == MOVED)
