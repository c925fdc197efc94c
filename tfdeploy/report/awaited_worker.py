"""The worker that the others wait for in a synchronous training, where all make each step together, at the same speed. Pure.

It is in its own code in nearly all samples of the stacks, while every other one is in TensorFlow, and uses little of a processor.
Samples of less than some steps do not tell: a chief that writes a checkpoint looks the same.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from ..agent.task_dump import PythonThread
from ..units import named
from .program_problems import LIBRARY, Finding
from .task_sight import TaskSight

SAMPLES, STEPS = 8, 4
"""So many samples are needed, and so many steps meanwhile: by the log, and by the bytes that all exchanged between two samples."""

STEP_BYTES = 1024
"""So many bytes at least. A connection without steps has about 200 in a second."""

OWN, OWN_OF_OTHERS, IN_TENSORFLOW = 0.9, 0.1, 0.8
"""The parts of the samples: of one function in the awaited worker at least, of own code in each other one at most, and of calls of
TensorFlow in each other one at least."""

OTHERS_CPUS = 0.5
"""A worker that uses more of the processors computes, and does not wait."""

_LIBRARY_OF_STEPS = re.compile(r"/(?:tensorflow|keras|tf_keras|horovod|jax)/")
_NEXT_BATCH = re.compile(r"/gen_dataset_ops\.py:\S+ in \w*iterator_get_next")
_STEP = re.compile(
    r"/tensorflow/python/(?:eager/execute|client/session|distribute/cross_device_\w+|ops/(?:gen_)?collective_ops)\.py:"
    r"|/tensorflow/python/framework/ops\.py:\S+ in _?numpy"
)
_FRAME = re.compile(r"(?P<file>.*):(?P<line>\S+) in (?P<function>.*)")
_PS = "ps"
_MOST = 5


def awaited_worker(tasks: Sequence[TaskSight]) -> Iterator[Finding]:
    """The finding about it, if there is one. A training with ps has none: its steps may be asynchronous."""
    trainers = [task for task in tasks if task.trains]
    if len(trainers) < 2 or any(task.job == _PS for task in tasks) or not _make_steps(trainers):
        return
    for task in trainers:
        others = [other for other in trainers if other is not task]
        samples = _own_frames(task)
        place, count = _common_function(samples)
        is_between = [bool(before and after) for before, after in pairwise(samples)]
        if count and _exchanges(task, trainers, is_between) >= STEPS and all(map(_waits, others)):
            names = named([other.hostname for other in others], _MOST)
            verb = "waits" if len(others) == 1 else "wait"
            text = f"{task.hostname} keeps the others waiting: {count} of {len(samples)} samples of it are in {place}"
            text += f", while {names} {verb} for the same step."
            yield Finding(task.hostname, text, "Compare its data and its machine with those of the others.")


def _make_steps(trainers: Sequence[TaskSight]) -> bool:
    """Whether these tasks were seen to make some steps together during the samples."""
    dumps = [task.dump for task in trainers if task.dump and len(task.dump.inputs) == len(task.dump.samples) >= SAMPLES]
    if len(dumps) < len(trainers):
        return False
    rate, seconds = max(task.progress.rate or 0.0 for task in trainers), min(dump.sampling for dump in dumps)
    return rate * seconds >= STEPS and all(_exchanges(task, trainers) >= STEPS for task in trainers)


def _exchanges(task: TaskSight, trainers: Sequence[TaskSight], is_counted: Sequence[bool] = ()) -> int:
    """Between how many pairs of samples, of those that are counted, a task exchanged bytes with others that train."""
    names = {other.hostname for other in trainers} - {task.hostname}
    connections = task.dump.connections if task.dump else []
    moved = [item.between for item in connections if item.between and task.peers.get(item.peer) in names]
    sums = [sum(column) for column in zip(*moved, strict=False)]
    counted = is_counted or [True] * len(sums)
    return sum(size >= STEP_BYTES and counts for size, counts in zip(sums, counted, strict=False))


def _waits(task: TaskSight) -> bool:
    own, samples = _own_frames(task), task.dump.samples if task.dump else []
    in_step = [any(map(_STEP.search, item.frames)) for item in samples]
    is_idle = task.dump is not None and task.dump.cpus < OTHERS_CPUS
    return is_idle and sum(in_step) >= IN_TENSORFLOW * len(own) and sum(map(bool, own)) <= OWN_OF_OTHERS * len(own)


def _own_frames(task: TaskSight) -> list[list[str]]:
    """The frames of the program that were running at each sample: of an input function first, then of the main thread, where it
    runs no code of TensorFlow, or waits there for its next batch."""
    if task.dump is None:
        return []
    return [
        [*_outside(thread), *_main_frames(main)]
        for main, thread in zip(task.dump.samples, task.dump.inputs, strict=False)
    ]


def _main_frames(main: PythonThread) -> list[str]:
    if main.frames and _NEXT_BATCH.search(main.frames[0]):
        return [frame for frame in main.frames if not LIBRARY.search(frame)]
    return _outside(main)


def _outside(thread: PythonThread) -> list[str]:
    """The frames of the program that run no code of TensorFlow now."""
    calls = [bool(_LIBRARY_OF_STEPS.search(frame)) for frame in thread.frames]
    inner = thread.frames[: calls.index(True)] if any(calls) else thread.frames
    return [frame for frame in inner if not LIBRARY.search(frame)]


def _common_function(samples: Sequence[Sequence[str]]) -> tuple[str, int]:
    """The innermost function that nearly all samples have, `load (train.py:14)`, and how many have it; 0 where there is none."""
    counts = Counter(chain.from_iterable({*map(_function, frames)} for frames in samples))
    frames = list(chain.from_iterable(samples))
    for frame in frames:
        function = _function(frame)
        if counts[function] >= OWN * len(samples):
            [(common, _)] = Counter(item for item in frames if _function(item) == function).most_common(1)
            match = _FRAME.fullmatch(common)
            place = f"{match['function']} ({match['file'].rpartition('/')[2]}:{match['line']})" if match else common
            return place, counts[function]
    return "", 0


def _function(frame: str) -> tuple[str, str]:
    match = _FRAME.fullmatch(frame)
    return (match["file"], match["function"]) if match else ("", frame)
