"""The MNIST program with the time before each of its lines, and what these lines contain."""

import re
import shutil
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from .engine import ROOT, TASKS
from .processes import BenchError, last_lines

PROGRAM = ROOT.parent / "programs" / "mnist" / "train"
WORKERS = 2
ENDLESS = 10_000_000
"""More steps than any benchmark waits for."""

_FEWEST_LINES = 3

_STEP = re.compile(r"(\d+\.\d+) step (\d+) ", re.MULTILINE)
_JOINED = re.compile(r"(\d+\.\d+) worker-\d+ (?:resumed|started) at step ", re.MULTILINE)
_OVER = re.compile(r"(\d+\.\d+) over$", re.MULTILINE)


def lay_out(folder: Path) -> None:
    """Copy the program, and what stamps its lines, to `folder`."""
    shutil.copytree(PROGRAM, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TASKS / "stamped.py", folder)


def command(steps: int) -> list[str]:
    """The program and its arguments; checkpoints only at the beginning and the end."""
    return ["stamped.py", "train.py", f"--steps={steps}", "--save_steps=1000000"]


def steps(outputs: Sequence[str]) -> list[tuple[float, int]]:
    """When each global step was printed, from what all workers printed."""
    return sorted((float(at), int(step)) for text in outputs for at, step in _STEP.findall(text))


def joined(output: str) -> list[float]:
    """When a worker opened its session at the ps, at each start."""
    return [float(at) for at in _JOINED.findall(output)]


def rate(outputs: Sequence[str], begun: float, ended: float) -> float:
    """Global steps a second between two times, from the first step that was printed then to the latest."""
    reported = _rising([item for item in steps(outputs) if begun <= item[0] <= ended])
    if len(reported) < _FEWEST_LINES:
        printed = last_lines("\n".join(map(last_lines, outputs)))
        raise BenchError(f"the program printed its steps {len(reported)} times only; its last lines:\n{printed}")
    (first, low), (last, high) = reported[0], reported[-1]
    return (high - low) / (last - first)


def _rising(reported: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Those with a later step than all before: a worker that was stopped between its step and its line prints an older one."""
    latest = accumulate((step for _, step in reported), max, initial=-1)
    return [item for item, before in zip(reported, latest, strict=False) if item[1] > before]


def over(outputs: Sequence[str]) -> float:
    """When the last of the workers ended."""
    return max(float(match[1]) for text in outputs for match in _OVER.finditer(text))
