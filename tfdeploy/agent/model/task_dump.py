"""What a launcher sends of its program for `tfdeploy dump`: processors, memory and Python stacks. Pure."""

from dataclasses import dataclass, field
from typing import List

from .json_data import SparseJsonData

MAX_BYTES = 128 * 1024
"""The longest dump of a task, as JSON."""


@dataclass(frozen=True)
class PythonThread(SparseJsonData):
    """The stack of a thread: `train.py:33 in step`, the innermost frame first. Paths in the code of the run are relative."""

    name: str = ""
    """The name of the thread."""
    frames: List[str] = field(default_factory=list)
    """Its functions, with file and line."""


@dataclass(frozen=True)
class TaskDump(SparseJsonData):
    """One task's program. Without processes, no program runs."""

    hostname: str
    """The name of the task."""
    processes: int = 0
    """How many processes it has."""
    cpus: float = 0.0
    """Processors in use by all processes, over about a second."""
    memory: int = 0
    """Bytes of all processes; a page that they share counts in part."""
    python: List[PythonThread] = field(default_factory=list)
    """The stacks of the first process that Python runs; the main thread first."""
    notes: List[str] = field(default_factory=list)
    """What is missing, and why."""
