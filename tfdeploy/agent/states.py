"""The words for what a task and a job have come to, and what the keeper remembers of each task. Pure."""

from typing import Any, Dict, List, NamedTuple, Optional

SCHEDULED, STARTING, WAITING, RUNNING = "scheduled", "starting", "waiting", "running"
SUCCEEDED, FAILED, KILLED, OUT_OF_MEMORY = "succeeded", "failed", "killed", "out of memory"
RESTARTING, INTERRUPTED, STOPPED, LOST = "restarting", "interrupted", "stopped", "lost"
UNREACHABLE, UNKNOWN = "unreachable", "unknown"

DEAD = frozenset({FAILED, KILLED, OUT_OF_MEMORY})
"""A task that ended badly and is not started again."""

FINAL = DEAD | {SUCCEEDED, STOPPED}
"""A task that this run starts no more."""

TENSORBOARD, TENSORBOARD_PORT = "tensorboard", 6006
"""The job that looks on, and the port that people know it by."""

GPU_WORKER = "gpu_worker"
WORKERS = ("worker", GPU_WORKER)
"""The jobs that are TensorFlow's job `worker`, in the order of their tasks there: it is told nothing of who has GPUs."""


class Task:
    """What the keeper remembers of one task in one run. Times are seconds since 1970.

    `leaving` is what happens to it by the user's word, in one word, until the launcher has come that this gives it.
    """

    def __init__(self, hostname: str, job: str, index: int) -> None:
        self.hostname = hostname
        self.job = job
        self.index = index
        self.state = SCHEDULED
        self.reason = ""
        self.attempt = 1
        self.failures = 0
        self.not_before = 0.0
        self.leaving = ""
        self.instance = ""
        self.container = ""
        self.machine = ""
        self.host = ""
        self.port = 0
        self.ready = False
        self.exit_code: Optional[int] = None
        self.signal = ""
        self.created = 0.0
        self.started = 0.0
        self.ended = 0.0
        self.seen = 0.0

    @property
    def looks_on(self) -> bool:
        """No part of the cluster: nobody waits for it, nothing ends with it, and it goes on after the job's end."""
        return self.job == TENSORBOARD

    @property
    def address(self) -> str:
        """`host:port` where the task's peers find it."""
        return f"{self.host}:{self.port}"

    def to_dict(self) -> Dict[str, Any]:
        """All of it, as JSON has it."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Task":
        """The same, back again; what a newer version added and an older record lacks keeps its default."""
        task = cls(data["hostname"], data["job"], data["index"])
        vars(task).update({key: value for key, value in data.items() if key in vars(task)})
        return task


class Verdict(NamedTuple):
    """What a job has come to."""

    state: str
    reason: str
    at: float


class Job:
    """What the keeper remembers of one run: what was asked, its tasks, and the verdict once there is one.

    `gone` has the launcher's instance of each task that was taken away, by hostname: it is not to come back, another may.
    `dismissed` is the user's word that nothing is to go on, nor what looks on.
    """

    def __init__(self, run: Dict[str, Any], now: float) -> None:
        self.run = run
        self.given = now
        self.tasks: Dict[str, Task] = {item["hostname"]: Task(**item) for item in run["tasks"]}
        self.book: Dict[str, str] = {}
        self.verdict: Optional[Verdict] = None
        self.waiting_since = now
        self.roll: List[str] = []
        self.rolling = ""
        self.roll_from = 0.0
        self.gone: Dict[str, str] = {}
        self.dismissed = False

    @property
    def crew(self) -> List[Task]:
        """The tasks whose job it is: all but those that look on."""
        return [task for task in self.tasks.values() if not task.looks_on]

    @property
    def wired(self) -> bool:
        """All tasks had come when the address book was made; `book` holds their addresses by hostname."""
        return bool(self.book)

    def to_dict(self) -> Dict[str, Any]:
        """All of it, as JSON has it; a copy, which does not change when the job does."""
        data = dict(vars(self))
        data["book"], data["roll"], data["gone"] = dict(self.book), list(self.roll), dict(self.gone)
        data["tasks"] = {hostname: task.to_dict() for hostname, task in self.tasks.items()}
        data["verdict"] = list(self.verdict) if self.verdict else None
        return data

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "Job":
        """The same, back again."""
        job = cls(data["run"], data["given"])
        job.tasks = {hostname: Task.from_dict(task) for hostname, task in data["tasks"].items()}
        job.book = data["book"]
        job.verdict = Verdict(*data["verdict"]) if data["verdict"] else None
        job.roll, job.rolling, job.roll_from = data["roll"], data["rolling"], data.get("roll_from", 0.0)
        job.waiting_since = data["waiting_since"]
        job.gone, job.dismissed = data.get("gone", {}), data.get("dismissed", False)
        return job
