"""What must be true of the programs during a round, whatever tfdeploy reports: of samples of their step counters and processes. Pure.

A fault *touches* a task when it acts on the task's program, its launcher, its disk or its machine. Until a touch has ended and the step
counter rises again, the task is not watched here: the invariants of the end of a round say that it recovers.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from tests.chaos.training import STEPS

INTERVAL = 0.2
"""Seconds between two samples."""

MOST_STILL = 5.0
"""So many seconds the step counter of a program that nothing touches may be unchanged; a step takes 0.08 s on an idle machine.

A machine that is busy delays the samples too: between two samples no more than twice the interval is counted.
"""


@dataclass(frozen=True)
class Pulse:
    """What a program has written last."""

    start: str
    step: int


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment. Keys are hostnames."""

    at: float
    """Seconds, by a clock that does not step."""
    pulses: Mapping[str, Pulse] = field(default_factory=dict)
    processes: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Process ids. Those of one task all existed at one moment."""


@dataclass
class Touch:
    """The time in which a fault acts on programs."""

    begin: float
    task: str = "*"
    """A hostname; `*` for all."""
    end: float = inf
    may_end: bool = True
    """Whether it may end programs; otherwise it may only have them stand still."""

    def covers(self, task: str, begin: float, end: float) -> bool:
        """Whether it acts on the task in a part of this time."""
        return self.task in ("*", task) and self.begin <= end and self.end >= begin


def untouched_programs_train(
    samples: Sequence[Sample], touches: Sequence[Touch], ended: Collection[str]
) -> Iterator[str]:
    """A program that nothing touches is not ended, and its step counter rises. `ended` has the starts that have ended by themselves."""
    for task in sorted({task for sample in samples for task in sample.pulses}):
        own = [touch for touch in touches if touch.task in ("*", task)]
        yield from _watch(task, samples, own, ended)


def _watch(task: str, samples: Sequence[Sample], touches: Sequence[Touch], ended: Collection[str]) -> Iterator[str]:
    watched, still = "", 0.0
    for before, now in pairwise(samples):
        acting = [touch for touch in touches if touch.covers(task, before.at, now.at)]
        rises = _rises(before.pulses.get(task), now.pulses.get(task))
        place = f"{now.at - samples[0].at:.1f} s after the first sample, {task}"
        if watched in ended or _is_over(before) or any(touch.may_end for touch in acting):
            watched = ""
        elif not watched:
            watched, still = now.pulses[task].start if rises and now.processes.get(task) else "", 0.0
        elif now.pulses[task].start != watched or not (before.processes.get(task) or now.processes.get(task)):
            yield f"{place}: its program was ended, and no fault had touched it"
            watched = ""
        else:
            still = 0.0 if rises or acting else still + min(now.at - before.at, 2 * INTERVAL)
            if still > MOST_STILL:
                yield f"{place}: no step for {MOST_STILL:g} s after step {now.pulses[task].step}, and no fault had touched it"
                watched = ""


def _is_over(sample: Sample) -> bool:
    """Whether all workers have done their steps: then the run succeeds, and the other tasks are stopped."""
    steps = [pulse.step for task, pulse in sample.pulses.items() if task.startswith("worker")]
    return min(steps, default=0) >= STEPS


def _rises(before: Pulse | None, now: Pulse | None) -> bool:
    return before is not None and now is not None and before.start == now.start and now.step > before.step


def one_process_each(samples: Sequence[Sample]) -> Iterator[str]:
    """A task never has two processes at once; one that is being stopped counts until it has ended."""
    seen: set[tuple[int, ...]] = set()
    for sample in samples:
        for task, processes in sample.processes.items():
            ids = tuple(sorted(processes))
            if len(ids) > 1 and ids not in seen:
                seen.add(ids)
                yield f"{sample.at - samples[0].at:.1f} s after the first sample, {task} had the processes {ids} at once"
