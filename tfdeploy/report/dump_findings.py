"""Which task the others wait for, and why, from one dump of all tasks. Pure.

A wrong finding is worse than none. So each one needs what a healthy training never shows, and its numbers are at the top.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from statistics import median_low

from ..agent.run_state import WORKERS
from ..agent.task_dump import ProcessDump
from ..units import named, text_of_seconds, text_of_size
from .awaited_worker import awaited_worker
from .peer_traffic import sent_rate, waiting_connections
from .program_problems import LIBRARY, Finding
from .progress import Progress
from .task_sight import STALL_PAUSES, STALL_SECONDS, TaskSight, place_in

SLOW, SLOW_OF_TWO, SLOW_READINGS, SLOW_SECONDS = 2.0, 3.0, 5, 10.0
"""A task is slow whose speed is the median of the others divided by this, measured over so many lines, and seconds besides its longest
pause."""

SKEWED_PART, SKEWED_BYTES = 0.75, 100e6
"""A ps is a bottleneck that sends this part of all bytes, and so many of them a second: a network of one gigabit is full. Below that,
small models have most of their variables on one ps, and train well."""

INPUT_SAMPLES, INPUT_PART = 4, 0.9
"""Input is slow when a training waits for it in so many samples, and in this part of all."""

SWAP_BYTES, SWAP_FAULTS = 64 << 20, 100.0
FULL_PART = 0.95

_READS = frozenset(
    (
        "read",
        "pread64",
        "readv",
        "recvfrom",
        "recvmsg",
        "write",
        "writev",
        "connect",
        "accept",
        "accept4",
        "fcntl",
        "flock",
    )
)
"""Calls in which a training waits for something outside of TensorFlow."""

_LOCK = "futex"
_INPUT = re.compile(r"tensorflow/python/data/ops/iterator_ops\.py:")
_RUNTIME = re.compile(r"/(?:tensorflow|keras|tf_keras)/|/(?:grpc|jax|numpy)/")
"""Paths of frames that wait for TensorFlow itself, and so for its peers. It may wait in a thread pool of Python."""

_PS = "ps"
_MOST = 5


def findings(tasks: Sequence[TaskSight], now: float) -> list[Finding]:
    """What is wrong, causes first; empty for nothing. `now` is by the clock of the log lines."""
    causes = [*_stopped(tasks), *_disk(tasks), *_memory(tasks), *_unreachable(tasks, now)]
    explained = {finding.about for finding in causes}
    awaited = list(awaited_worker(tasks))
    fast = [task for task in tasks if not any(task.hostname == finding.about for finding in awaited)]
    effects = [*_stalled(tasks, now, explained), *_skewed(tasks), *_slow(tasks, now), *awaited, *_input(fast, now)]
    return [*causes, *effects]


def _stopped(tasks: Sequence[TaskSight]) -> Iterator[Finding]:
    for task, process in _processes(tasks):
        if process.state == "T":
            text = f"{task.hostname} is stopped: its process {process.pid} ({process.name}) has received SIGSTOP."
            yield Finding(
                task.hostname, text, f"`tfdeploy exec {task.hostname} -- kill -CONT {process.pid}` continues it."
            )


def _disk(tasks: Sequence[TaskSight]) -> Iterator[Finding]:
    for task, process in _processes(tasks):
        if process.state == "D" and process.wait is not None and process == task.main:
            text = f"{task.hostname} waits for a disk or a network file system, {task.where}."
            yield Finding(task.hostname, text, "Check the volume that has the file.")


def _processes(tasks: Sequence[TaskSight]) -> Iterator[tuple[TaskSight, ProcessDump]]:
    for task in tasks:
        for process in task.dump.processes if task.dump else ():
            yield task, process


def _memory(tasks: Sequence[TaskSight]) -> Iterator[Finding]:
    for task in tasks:
        if task.dump is None:
            continue
        swap, faults = (sum(getattr(item, name) for item in task.dump.processes) for name in ("swap", "faults"))
        used, limit = task.dump.limited, task.dump.memory_limit
        if swap >= SWAP_BYTES and faults >= SWAP_FAULTS:
            text = f"{task.hostname} swaps: it reads {faults:.0f} pages a second; {text_of_size(swap)} are swapped out."
            yield Finding(task.hostname, text, "Its machine has too little memory for its tasks.")
        elif limit and used >= FULL_PART * limit:
            text = f"{task.hostname} uses {used / limit:.0%} of its {text_of_size(limit)} of memory, and is killed above that."
            yield Finding(task.hostname, text, f'Raise `jobs={{"{task.job}": {{"memory": …}}}}`.')


def _unreachable(tasks: Sequence[TaskSight], now: float) -> Iterator[Finding]:
    """Tasks that do nothing but try to connect."""
    for task in tasks:
        addresses = {item.peer for item in waiting_connections(task.dump)} if task.dump else set()
        has_begun = task.progress.stepped_at is not None
        if addresses and task.is_idle and (not has_begun or task.stalled_seconds(now)):
            text = (
                f"{task.hostname} waits for a connection to {named(sorted(addresses), _MOST)}, which does not respond."
            )
            yield Finding(task.hostname, text, "Check that something listens there, and the firewalls between.")


def _stalled(tasks: Sequence[TaskSight], now: float, explained: set[str]) -> Iterator[Finding]:
    trainers = [task for task in tasks if task.trains]
    stalled = {task.hostname: task.stalled_seconds(now) for task in trainers}
    running = [task for task in trainers if not stalled[task.hostname] and task.hostname not in explained]
    silent = [task for task in running if task.dump is None]
    is_all = any(stalled.values()) and len(running) == len(silent)
    causes = [task for task in trainers if stalled[task.hostname] and _is_cause(task, is_all)]
    blamed = {*explained, *(task.hostname for task in (*causes, *silent))}
    others = len(trainers) > 1 and is_all and len(blamed) == 1
    for task in silent if is_all else [task for task in silent if task.silent_seconds(now)]:
        who = "All wait; " if others else ""
        yield Finding(task.hostname, f"{who}{task.hostname} has sent no dump: its launcher does not respond.")
    for task in causes:
        if task.hostname not in explained:
            where, since = _where(task), text_of_seconds(stalled[task.hostname])
            text = f"All wait for {task.hostname}, which has been {where} for {since}." if others else ""
            yield Finding(task.hostname, text or f"{task.hostname} has made no step for {since}, and is {where}.")
    if is_all and not causes and not silent and not explained:
        since = text_of_seconds(min(filter(None, stalled.values())))
        lines = [f"{task.hostname} is {task.where}" for task in trainers[:_MOST]]
        yield Finding("", f"No task has made a step for {since}, and none uses a processor.", lines=lines)


def _where(task: TaskSight) -> str:
    if task.dump is None or not _is_in_iterator(task):
        return task.where
    [main], fed = task.dump.samples[-1:], task.dump.inputs[-1:]
    return f"waiting for its input ({place_in([*(fed[0].frames if fed else ()), *main.frames])})"


def _is_cause(task: TaskSight, is_all: bool) -> bool:
    """Whether a stalled task waits for something else than its peers. A lock may also be a wait for the end of the others."""
    if task.wait.call in _READS:
        return task.wait.target not in task.peers
    frames = task.dump.python[0].frames if task.dump and task.dump.python else []
    called = takewhile(LIBRARY.search, frames)
    is_lock = task.wait.call == _LOCK and bool(frames) and not any(map(_RUNTIME.search, called))
    return _is_in_iterator(task) or (is_lock and (is_all or task.progress.part is not None))


def _skewed(tasks: Sequence[TaskSight]) -> Iterator[Finding]:
    servers = [(task, sent_rate(task.dump)) for task in tasks if task.job == _PS and task.dump and task.dump.has_bytes]
    total = sum(rate for _, rate in servers)
    for task, rate in servers if len(servers) > 1 else []:
        if rate >= SKEWED_BYTES and rate >= SKEWED_PART * total:
            text = f"{task.hostname} sends {rate / total:.0%} of the bytes of all {len(servers)} ps ({text_of_size(rate)}/s)."
            yield Finding(
                task.hostname, text, "Distribute its variables, such as by a partitioner for the largest ones."
            )


def _slow(tasks: Sequence[TaskSight], now: float) -> Iterator[Finding]:
    for job in WORKERS:
        measured = [task for task in tasks if task.job == job and _is_measured(task, now)]
        rates = {task.hostname: _steady_rate(task.progress) for task in measured}
        for hostname, rate in rates.items():
            others = [other for name, other in rates.items() if name != hostname and other]
            if not rate or not others:
                continue
            usual = median_low(others)
            if usual >= rate * (SLOW if len(others) > 1 else SLOW_OF_TWO):
                than = "the median" if len(others) > 1 else next(name for name in rates if name != hostname)
                text = (
                    f"{hostname} is {usual / rate:.1f} times slower than {than} ({rate:.1f} and {usual:.1f} steps/s)."
                )
                yield Finding(hostname, text)


def _is_measured(task: TaskSight, now: float) -> bool:
    progress = task.progress
    has_enough = progress.readings >= SLOW_READINGS and _steady_seconds(progress) >= SLOW_SECONDS
    return has_enough and now - (progress.stepped_at or 0.0) < max(STALL_SECONDS, STALL_PAUSES * progress.pause)


def _steady_seconds(progress: Progress) -> float:
    """The time that the speed is measured over, without the longest pause: of a checkpoint, an evaluation or a compilation."""
    return (progress.readings - 1) * progress.pause - progress.longest


def _steady_rate(progress: Progress) -> float:
    """The speed without this pause; that which is measured, where all pauses are the same."""
    return (progress.rate or 0.0) * (progress.readings - 2) * progress.pause / _steady_seconds(progress)


def _input(tasks: Sequence[TaskSight], now: float) -> Iterator[Finding]:
    waiting = [task for task in tasks if task.trains and task.progress.step is not None and _waits_for_input(task, now)]
    if waiting:
        names = named([task.hostname for task in waiting], _MOST)
        verb = "waits for its" if len(waiting) == 1 else "wait for their"
        count, total = _iterator_samples(waiting[0])
        text = f"{names} {verb} input: {count} of {total} samples are in the iterator of tf.data ({waiting[0].place})."
        yield Finding(waiting[0].hostname, text, "Prepare it in parallel (`num_parallel_calls`, `prefetch`).")


def _waits_for_input(task: TaskSight, now: float) -> bool:
    return _is_in_iterator(task) and not task.stalled_seconds(now)


def _is_in_iterator(task: TaskSight) -> bool:
    count, total = _iterator_samples(task)
    return total >= INPUT_SAMPLES and count >= INPUT_PART * total


def _iterator_samples(task: TaskSight) -> tuple[int, int]:
    """How many samples are in an iterator of tf.data, and how many there are."""
    samples = task.dump.samples if task.dump else []
    return sum(any(map(_INPUT.search, item.frames)) for item in samples), len(samples)
