"""Tasks with a session of TensorFlow that waits for a peer that does not respond, or that never began, by their last lines. Pure.

A session without device filters asks each task of its cluster to respond before it begins, and logs this line every 10 s:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/distributed_runtime/master.cc
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..agent.control.elastic import optional_workers
from ..agent.control.success_policy import WORKER_0, deciding_tasks, is_worker
from ..agent.record.record import StoredLine
from ..agent.record.steps import step_in
from ..agent.run_state import FINAL, RUNNING, STOPPED, SUCCEEDED, WORKERS, RunState, TaskState
from ..backends.base import ObservedState
from .escapes import plain
from .failure import is_noise

_WAIT = re.compile(
    r"CreateSession still waiting for response from worker: /job:(?P<job>\w+)/replica:\d+/task:(?P<index>\d+)"
)
_NOT_READY = re.compile(r"Waiting for model to be ready\.")
"""A worker that is not the chief prints this every 30 s until the chief has initialized the variables:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/training/session_manager.py"""

_WAIT_SECONDS = 40.0
"""A task that waits prints such a line at least so often."""

_READ_LINES = 20
"""An observation reads so many lines of each task. A task with fewer has printed no others."""

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
    """While the run is open, the tasks that print nothing but that they wait for a peer; after its success, the workers that waited
    until then, and never trained."""
    run = observed.view.run_state
    if run is None:
        return []
    if run.result is not None:
        return _never_trained(run, observed) if run.result.state == SUCCEEDED else []
    waits = []
    for task in run.training_tasks:
        shown = [plain(line.text) for line in observed.view.logs.get(task.hostname, [])]
        texts = [text for text in shown if text.strip()]
        wait = _wait(run, task, texts) if task.state == RUNNING else None
        if wait is not None:
            waits.append(wait)
    return waits


def _never_trained(run: RunState, observed: ObservedState) -> list[SessionWait]:
    lines = {name: [line for line in found if line.text.strip()] for name, found in observed.view.logs.items()}
    others = deciding_tasks(run) if run.spec.success == WORKER_0 else []
    others_train = any(_has_step(lines.get(other.hostname, [])) for other in others)
    waits = []
    for task in run.training_tasks:
        own = lines.get(task.hostname, [])
        if not is_worker(run, task) or task.state not in (RUNNING, STOPPED) or _has_step(own):
            continue
        match = _last_wait(own)
        if match is not None and not _is_old(run, task, own, observed.view.at):
            waits.append(_waited(run, task, match))
        elif match is None and task.is_quiet and len(own) < _READ_LINES and others_train:
            waits.append(_no_step(task))
    return waits


def _waited(run: RunState, task: TaskState, match: re.Match[str]) -> SessionWait:
    name = task.hostname
    peer = _peer(run, match["job"], int(match["index"])) if match.re is _WAIT else None
    if peer is not None:
        text = f"{name} never trained a step: its session waited for {peer.hostname} until the run had succeeded."
        return SessionWait(name, peer.hostname, text, f"In the program, {_filters(task)}")
    text = f"{name} never trained a step: it waited for initialized variables until the run had succeeded."
    return SessionWait(name, "", text, "It looks for them every 30 s: a training that takes longer has all workers.")


def _no_step(task: TaskState) -> SessionWait:
    name = task.hostname
    text = f"{name} printed no step before the run had succeeded, unlike the worker that decides, and did nothing after that."
    remedy = f"If it should train, it began too late, or waited for another task: `tfdeploy logs {name}`."
    return SessionWait(name, "", text, remedy)


def _has_step(lines: Sequence[StoredLine]) -> bool:
    return any(step_in(line.text) is not None for line in lines)


def _last_wait(lines: Sequence[StoredLine]) -> re.Match[str] | None:
    """The match of the last line, without those that TensorFlow prints at each start; None where it does not wait."""
    for line in reversed(lines):
        match = _WAIT.search(line.text) or _NOT_READY.search(line.text)
        if match is not None or not is_noise(line.text):
            return match
    return None


def _is_old(run: RunState, task: TaskState, lines: Sequence[StoredLine], now: float) -> bool:
    """Whether the task has been silent for longer than one that still waits."""
    last, end = max(line.at for line in lines), task.since if task.state in FINAL else now
    return last > run.submitted_at and end - last > _WAIT_SECONDS


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
