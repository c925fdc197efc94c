"""Which tasks decide the result of a run. Pure."""

from typing import List

from .run_spec import RunSpec
from .run_state import WORKERS, RunState, TaskState

CHIEF, WORKER_0, ALL_WORKERS = "chief", "worker-0", "all-workers"
"""The success rules: the tasks that must succeed."""


def deciding_names(spec: RunSpec) -> List[str]:
    """The run succeeds when all of these tasks succeed, also those that do not exist any more; empty where all tasks serve."""
    if spec.serve:
        return []
    if spec.success == WORKER_0:
        first = [task.hostname for name in WORKERS for task in spec.tasks if task.job == name and task.index == 0]
        return first[:1]
    jobs = ("chief",) if spec.success == CHIEF else ("chief", *WORKERS)
    return [task.hostname for task in spec.tasks if task.job in jobs]


def deciding_tasks(run: RunState) -> List[TaskState]:
    """Of the tasks that decide the result, those that exist; empty where all tasks serve."""
    return [run.tasks[name] for name in deciding_names(run.spec) if name in run.tasks]
