"""What happens in a run, as data. `report.events` makes sentences of it. Pure."""

from dataclasses import dataclass, field
from typing import List, Optional

from .json_data import SparseJsonData
from .run_state import Ended, RunResult

RUN_SUBMITTED, RUN_RESUMED, RUN_ENDED, STOP_REQUESTED = "run_submitted", "run_resumed", "run_ended", "stop_requested"
RECORD_RESTORED = "record_restored"
STEPS_STOPPED, STEPS_CONTINUED = "steps_stopped", "steps_continued"
LAUNCHER_REGISTERED, LAUNCHER_REUSED, LAUNCHER_LOST = "launcher_registered", "launcher_reused", "launcher_lost"
BARRIER_PASSED, ADDRESS_CHANGED, TASKS_CHANGED = "barrier_passed", "address_changed", "tasks_changed"
WORKERS_CHANGED = "workers_changed"
TASK_STARTED, TASK_SUCCEEDED, TASK_FAILED, TASK_RESTARTING = (
    "task_started",
    "task_succeeded",
    "task_failed",
    "task_restarting",
)
TASK_INTERRUPTED, TASK_STOPPED, TASK_REMOVED = "task_interrupted", "task_stopped", "task_removed"
PROCESSES_KILLED, MODELS_NOT_STORED = "processes_killed", "models_not_stored"
RECORD_DAMAGED, RECORD_DELAYED = "record_damaged", "record_delayed"
RECORD_NOT_STORED, RECORD_STORED = "record_not_stored", "record_stored"
LAUNCHER_PROBLEM, OUTPUT_DROPPED, OUTPUT_APART = "launcher_problem", "output_dropped", "output_apart"
OUTPUT_LIMIT = "output_limit"
PATTERN_SLOW, PATTERN_DISABLED = "pattern_slow", "pattern_disabled"
UNTIL_DISABLED, UNTIL_NO_NUMBER = "until_disabled", "until_no_number"
ARTIFACTS_BEGUN, ARTIFACTS_STORED, ARTIFACT_LEFT_OUT, ARTIFACTS_LOST, ARTIFACTS_REMOVED = (
    "artifacts_begun",
    "artifacts_stored",
    "artifact_left_out",
    "artifacts_lost",
    "artifacts_removed",
)
RESTART_REQUESTED, REPLACE_REQUESTED, SETTINGS_CHANGED = "restart_requested", "replace_requested", "settings_changed"

TASK_WAITED, ENGINE_STATE, TASK_LOST, MACHINE_LOST = "task_waited", "engine_state", "task_lost", "machine_lost"
"""Kinds that are not in the record: a status command derives them from what it sees."""


@dataclass(frozen=True)
class Event(SparseJsonData):
    """One event. Fields that do not belong to its kind have their defaults, and are not in its JSON."""

    kind: str
    """What has happened, such as `task_failed`."""
    at: float = 0.0
    """Seconds since 1970."""
    task: str = ""
    """The hostname; empty for the run."""
    attempt: int = 0
    """The number of the start of its program in this run; 0 for none."""
    reason: str = ""
    """The words of another program, such as the engine's, or a word for a known reason."""
    exit: Optional[Ended] = None
    """How the program of the task ended."""
    delay: float = 0.0
    """Seconds until a restart, or of a wait, or since the last step."""
    failures: int = 0
    """How many failures of the task count for its restarts."""
    max_failures: int = 0
    """How many restarts it may have."""
    tasks: List[str] = field(default_factory=list)
    """The hostnames that it is about, where they are several; for a wait, the task that was waited for."""
    machine: str = ""
    """The machine that it is about."""
    state: str = ""
    """The word of an engine for a task's state, a machine's status, or the name of a metric."""
    result: Optional[RunResult] = None
    """How the run ended."""
    count: int = 0
    """How many bytes, or entries of the record."""
    artifacts: List[str] = field(default_factory=list)
    """The names of artifacts; for `artifacts_removed`, the runs that they were of."""
    commands: List[str] = field(default_factory=list)
    """The command lines of processes."""
