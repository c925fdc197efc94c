"""The progress of a training as text, and its goal. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ..agent.record.progress import Progress
from ..units import text_of_number, text_of_seconds

LEADERS = ("chief-0", "worker-0", "gpu-worker-0")
"""The first of these that a cluster has is the task that prints most about the training."""

_GOAL = re.compile(
    r"(?<![\w-])--?(?:(?:global|train|training|max|num|n|total|number_of)[_-])*(?:steps|iterations|iters|max[_-]step|num[_-]step)"
    r"[= ]['\"]?(\d[\d_]{0,14})\b"
)
"""A number with 16 digits or more is not a step, as in `reading`."""

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 16
_LARGEST = 1e300
"""Larger values are not in a curve: their sum would not be finite."""


def leaders_first(hostnames: Iterable[str]) -> list[str]:
    """The tasks that print most about the training, then the others."""
    names = list(hostnames)
    return [*(name for name in LEADERS if name in names), *(name for name in names if name not in LEADERS)]


def with_goals(progress: Mapping[str, Progress], commands: Mapping[str, str]) -> dict[str, Progress]:
    """The progress of tasks that run these commands, in the order of `leaders_first`. A goal that was printed counts first."""
    return {
        name: replace(progress[name], goal=progress[name].goal or goal(commands.get(name, "")))
        for name in leaders_first(progress)
    }


def first_progress(progress: Mapping[str, Progress]) -> Progress:
    """The first one that has a step or a loss."""
    return next((item for item in progress.values() if item.step is not None or item.loss is not None), Progress())


def goal(command: str) -> float | None:
    """The last step in a command, such as 2000 for `--train_steps=2000`; None if it has none."""
    match = _GOAL.search(command)
    return float(match[1].replace("_", "")) if match else None


def sparkline(values: Sequence[float]) -> str:
    """Values as at most 16 blocks in a row; each block is the mean of the values in its place."""
    numbers = [value for value in values if abs(value) <= _LARGEST]
    if not numbers:
        return ""
    count = min(_WIDTH, len(numbers))
    bounds = [round(place * len(numbers) / count) for place in range(count + 1)]
    means = [sum(numbers[begin:end]) / (end - begin) for begin, end in pairwise(bounds) if end > begin]
    low, span = min(means), max(means) - min(means)
    return "".join(_BLOCKS[round((mean - low) / span * (len(_BLOCKS) - 1)) if span else 0] for mean in means)


def progress_text(progress: Progress) -> str:
    """The progress of a running task, the most important first: `1200/2000  20s left  41.0 steps/s  loss 0.31 ▇▅▃▂▁`."""
    parts = (step_text(progress), left_text(progress), rate_text(progress), loss_text(progress))
    return "  ".join(filter(None, parts))


def step_text(progress: Progress) -> str:
    """`1200/2000`, or `step 1200` if the last one is not known; empty before the first step."""
    if progress.step is None:
        return ""
    step = text_of_number(min(progress.step, progress.goal or progress.step))
    return f"{step}/{text_of_number(progress.goal)}" if progress.goal else f"step {step}"


def rate_text(progress: Progress) -> str:
    """`41.0 steps/s`; empty if it is not known."""
    return "" if progress.rate is None else f"{progress.rate:.1f} steps/s"


def left_text(progress: Progress) -> str:
    """`20s left`; empty at the end, and if it is not known."""
    return f"{text_of_seconds(progress.left)} left" if progress.left else ""


def loss_text(progress: Progress) -> str:
    """The last loss and its curve: `loss 0.31 ▇▅▃▂▁`; empty if there is none."""
    if progress.loss is None:
        return ""
    return f"loss {progress.loss:.4g} {sparkline(progress.losses)}".rstrip()
