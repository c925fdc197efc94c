"""Tasks with a session of TensorFlow that waits for a peer that does not respond, by the last lines of their output. Pure.

A session without device filters asks each task of its cluster to respond before it begins, and logs this line every 10 s:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/distributed_runtime/master.cc
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..agent.elastic import optional_workers
from ..agent.run_state import FINAL, RUNNING, WORKERS, RunState, TaskState
from ..agent.success_policy import deciding_tasks
from ..backends.base import ObservedState
from .escapes import plain

_WAIT = re.compile(
    r"CreateSession still waiting for response from worker: /job:(?P<job>\w+)/replica:\d+/task:(?P<index>\d+)"
)
_LEAST_LINES = 3
"""So many such lines for one peer, of which there is one in 10 s, before a peer that still runs is named."""


@dataclass(frozen=True)
class SessionWait:
    """A task that waits for a peer, which has ended or does not respond."""

    hostname: str
    peer: str
    text: str
    remedy: str


def session_waits(observed: ObservedState) -> list[SessionWait]:
    """The tasks that print nothing but that they wait for a peer, while the run is open."""
    run = observed.view.run_state
    if run is None or run.result is not None:
        return []
    waits = []
    for task in run.training_tasks:
        shown = [plain(line.text) for line in observed.view.logs.get(task.hostname, [])]
        texts = [text for text in shown if text.strip()]
        wait = _wait(run, task, texts) if task.state == RUNNING else None
        if wait is not None:
            waits.append(wait)
    return waits


def _wait(run: RunState, task: TaskState, texts: Sequence[str]) -> SessionWait | None:
    awaited = []
    for text in reversed(texts):
        match = _WAIT.search(text)
        if match is None:
            break
        awaited.append((match["job"], int(match["index"])))
    absent = [name for job, index in awaited if (name := f"{job}-{index}") in optional_workers(run.spec)]
    missing = next((name for name in absent if name not in run.tasks), "")
    if missing:
        text = f"{task.hostname} waits for {missing}, which does not exist: its session has no device filters."
        return SessionWait(task.hostname, missing, text, f"In the program, {_filters(task)}")
    peers = [peer for job, index in awaited if (peer := _peer(run, job, index)) is not None]
    ended = next((peer for peer in peers if peer.state in FINAL), None)
    if ended is not None:
        text = f"{task.hostname} waits for {ended.hostname}, which has ended ({ended.state}): its session has no device filters."
        return SessionWait(task.hostname, ended.hostname, text, _remedy(run, task))
    counts = Counter(peer.hostname for peer in peers)
    silent = next((peer for peer in peers if counts[peer.hostname] >= _LEAST_LINES), None)
    if silent is None:
        return None
    text = f"{task.hostname} waits for {silent.hostname}, which is {silent.state} and does not respond to its session."
    remedy = f"If {silent.hostname} starts no server of TensorFlow, or starts it much later: {_filters(task)}"
    return SessionWait(task.hostname, silent.hostname, text, remedy)


def _remedy(run: RunState, task: TaskState) -> str:
    filters = f"In the program, {_filters(task)}"
    if task not in deciding_tasks(run) or task.hostname in ("chief-0", "worker-0"):
        return filters
    rule = "chief" if "chief" in run.spec.jobs else "worker-0"
    return f'{filters} Or set `success="{rule}"`, so that the run does not wait for {task.hostname}.'


def _filters(task: TaskState) -> str:
    own = f"/job:{'worker' if task.job in WORKERS else task.job}/task:{task.index}"
    return f'create the session with `config=tf.compat.v1.ConfigProto(device_filters=["/job:ps", "{own}"])`.'


def _peer(run: RunState, job: str, index: int) -> TaskState | None:
    """The task that TensorFlow knows by this job and index."""
    jobs = {"worker": WORKERS, "master": ("chief",)}.get(job, (job,))
    tasks = [task for name in jobs for task in run.training_tasks if task.job == name]
    return tasks[index] if index < len(tasks) else None
