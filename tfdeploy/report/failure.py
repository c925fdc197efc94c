"""Why a program failed, from the last lines of its output: without noise, and with the line of the exception first. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..agent.record.record import StoredLine
from ..agent.run_state import DEAD, RunState, TaskState
from ..backends.base import ObservedState
from .escapes import shown_text
from .remedies import exit_remedy

SHOWN_LINES = 5
"""How many lines of a failure are shown."""

_READ_LINES = 20
"""How many of the last lines, without noise, are searched for a remedy."""

_STDERR = 2


def _logged(severity: str) -> str:
    """A pattern for the begin of a line that TensorFlow's C++ code logs, in its own form or in that of absl."""
    return rf"(?:\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: {severity}|{severity}\d{{4}} \d\d:\d\d:\d+\.\d+)\s"


_STARTUP = "register cu|register factory|omputation placer|cuda_|cuInit|TF-TRT|libcu|libnvinfer|GPU|gpu"
_HARMLESS = "dataset|auto_shard|cpu_allocator|End of sequence|OUT_OF_RANGE|grappler|allocator_impl"
_NOISE = re.compile(
    "|".join(
        (
            _logged("I"),
            rf"{_logged('[WE]')}.*(?:{_STARTUP})",
            rf"{_logged('W')}.*(?:{_HARMLESS})",
            r".*oneDNN custom operations are on",
            r"WARNING:absl:|WARNING:tensorflow:AutoGraph",
            r"Additional GRPC error information from remote target|/job:\w+/replica:\d+/task:\d+\S*\s*$",
            r"WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR",
            r"To enable (?:the following instructions|them in other operations)",
            r"(?:WARNING:tensorflow:)?From .* is deprecated|Instructions for updating:",
            r"During handling of the above exception|The above exception was the direct cause",
        )
    )
)
"""What TensorFlow prints at each start, and other lines that do not explain why a program failed."""

_LOG_LINE = re.compile(_logged("[IWE]"))
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):|  File \"")
_FRAME = re.compile(r'\s+File "(?P<path>[^"<]+)", line (?P<line>\d+)')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib\d*/python[\d.]*/")
"""Where a frame is not in the user's program."""

_WARNING = re.compile(r"\S+:\d+: \w*Warning: ")
"""A warning of Python; the next line may be the line of its source."""

_UNRAISABLE = re.compile(r"Exception ignored ")
_ERROR = re.compile(
    rf"\S+: error: |FATAL |Fatal |[Ee]rror: |tfdeploy: |terminate called|Segmentation fault|{_logged('F')}"
)
"""The line of an error where there is no traceback: of argparse, absl, click, tfdeploy or C++."""


@dataclass(frozen=True)
class Failure:
    """A task that failed, in the words of its program."""

    hostname: str
    lines: list[str]
    """The line of the exception or error first, then the last other lines."""
    remedy: str
    where: str = ""
    """The line of the program that raised the exception: `train.py, line 9`; empty where that is unknown."""

    @property
    def place(self) -> str:
        """The same as a part of a sentence."""
        return f" in {self.where}" if self.where else ""


def is_noise(text: str) -> bool:
    """Whether a line is one of those that TensorFlow prints at each start."""
    return _NOISE.match(text) is not None


def failure_of(task: TaskState, observed: ObservedState) -> Failure:
    """The failure of a task: of its stderr, or of all of its output if its stderr has only noise."""
    lines = observed.view.logs.get(task.hostname, [])
    stderr = [line for line in lines if line.pipe == _STDERR]
    error, others = _parts(stderr)
    where = _where(stderr)
    if not error and not others:
        (error, others), where = _parts(lines), _where(lines)
    if not error and not others:
        others = [shown_text(line.text) for line in lines if line.text.strip()]
    shown = [*error, *others[-(SHOWN_LINES - len(error)) :]]
    return Failure(task.hostname, shown, exit_remedy(task, [*error, *others[-_READ_LINES:]]), where if error else "")


def failures(observed: ObservedState) -> list[Failure]:
    """The tasks that failed in a failed run, the cause first."""
    run = observed.view.run_state
    if run is None or run.result is None or run.result.state not in DEAD:
        return []
    return [failure_of(task, observed) for task in failed_tasks(run)]


def failed_tasks(run: RunState) -> list[TaskState]:
    """The tasks that failed: those that decided the result of the run first, then training tasks, each in the order of time."""
    deciding = run.result.tasks if run.result else []
    failed = [task for task in run.tasks.values() if task.state in DEAD]
    return sorted(failed, key=lambda task: (task.hostname not in deciding, task.is_auxiliary, task.ended))


def _without_warnings(texts: Sequence[str]) -> list[str]:
    """The lines without Python's warnings, and without the line of its source behind each."""
    of_warning = [_WARNING.match(text) is not None for text in texts]
    behind = [False, *of_warning][: len(texts)]
    rows = zip(texts, of_warning, behind, strict=True)
    return [text for text, is_one, is_behind in rows if not is_one and not (is_behind and text.startswith("  "))]


def _where(lines: Sequence[StoredLine]) -> str:
    """The innermost frame of the last traceback that is in the user's program: `train.py, line 9`; empty without one."""
    where = ""
    for line in lines:
        if line.text.startswith("Traceback "):
            where = ""
        elif (frame := _FRAME.match(line.text)) and not _LIBRARY.search(frame["path"]):
            where = f"{frame['path'].rpartition('/')[2]}, line {frame['line']}"
    return shown_text(where)


def _parts(lines: Sequence[StoredLine]) -> tuple[list[str], list[str]]:
    """The line of the exception or error, if there is one, and the other lines, without noise and the frames of tracebacks."""
    others: list[str] = []
    error = -1
    in_traceback = is_ignored = is_exception = False
    for text in _without_warnings([shown_text(line.text).rstrip() for line in lines]):
        if _TRACEBACK.match(text):
            in_traceback = True
        elif in_traceback and (not text.strip() or text.startswith("  ")):
            continue
        elif in_traceback and (
            _LOG_LINE.match(text) or is_noise(text)
        ):  # a thread of TensorFlow's prints at the same time
            others += [] if is_noise(text) else [text]
        elif in_traceback:
            in_traceback = False
            if not is_ignored:
                error, is_exception = len(others), True
                others.append(text)
            is_ignored = False
        elif _UNRAISABLE.match(text):
            is_ignored = True
        elif text.strip() and not is_noise(text):
            if _ERROR.match(text) and not is_exception:
                error = len(others)
            others.append(text)
    return ([others[error]], others[:error] + others[error + 1 :]) if error >= 0 else ([], others)
