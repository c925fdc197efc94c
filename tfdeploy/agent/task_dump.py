"""What a launcher sends of its program for `tfdeploy dump`: processes, waits, connections and Python stacks. Pure."""

from dataclasses import dataclass, field
from typing import List, Optional

from .json_data import SparseJsonData

MAX_BYTES = 128 * 1024
"""The longest dump of a task, as JSON."""


@dataclass(frozen=True)
class Wait(SparseJsonData):
    """What a thread waits in, at two moments with no run between them. Empty where it runs, or where the kernel does not show it."""

    call: str = ""
    """A system call, such as `read`; else the function of the kernel."""
    target: str = ""
    """The file, or the address at the other end, of a call with a descriptor. A path in the code of the run is relative."""
    seconds: float = -1.0
    """For how long it has not run; -1 where the kernel does not show it."""


@dataclass(frozen=True)
class ProcessDump(SparseJsonData):
    """One process of a program."""

    pid: int
    name: str = ""
    state: str = ""
    """The letter of `ps`, where it is the same at both moments: `T` is stopped, `D` waits without reacting to signals."""
    threads: int = 0
    cpus: float = 0.0
    """Processors in use during the interval."""
    memory: int = 0
    """Bytes; a page that processes share counts in part."""
    anonymous: int = 0
    """The part of it that no file has, so that the kernel cannot free it."""
    swap: int = 0
    """Bytes of it that are swapped out."""
    faults: float = 0.0
    """Pages a second that had to be read from a disk."""
    transferred: float = 0.0
    """Bytes a second that it has read and written."""
    wait: Optional[Wait] = None
    """That of its main thread."""


@dataclass(frozen=True)
class PeerConnection(SparseJsonData):
    """One TCP connection of a program. An address is `10.0.0.3:2222`."""

    local: str = ""
    peer: str = ""
    sent: int = 0
    """Bytes that the peer has acknowledged during the interval."""
    received: int = 0
    between: List[int] = field(default_factory=list)
    """Bytes in both directions between one of the samples and the next."""
    is_open: bool = True
    """False while the peer has not responded to the attempt to connect."""


@dataclass(frozen=True)
class PythonThread(SparseJsonData):
    """The stack of a thread: `train.py:33 in step`, the innermost frame first. Paths in the code of the run are relative."""

    name: str = ""
    frames: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class TaskDump(SparseJsonData):
    """One task's program. Without processes, no program runs."""

    hostname: str
    interval: float = 0.0
    """Seconds over which rates were measured."""
    processes: List[ProcessDump] = field(default_factory=list)
    """The one that trains first: of several, the first that Python runs."""
    memory_limit: int = 0
    """Bytes above which a process of the task is killed; 0 where there is no limit."""
    limited: int = 0
    """Bytes that count for this limit: all where the launcher watches it; else those that no file has, as the kernel frees others."""
    connections: List[PeerConnection] = field(default_factory=list)
    has_bytes: bool = False
    """Whether the kernel counts the bytes of connections for the launcher."""
    python: List[PythonThread] = field(default_factory=list)
    """The stacks of the first process; the main thread first."""
    samples: List[PythonThread] = field(default_factory=list)
    """The main thread at moments about 0.4 s apart."""
    inputs: List[PythonThread] = field(default_factory=list)
    """What a thread of TensorFlow runs of the program at the same moments, for its input; without frames where none does."""
    sampling: float = 0.0
    """Seconds between the first sample and the last."""
    notes: List[str] = field(default_factory=list)
    """What is missing, and why."""

    @property
    def cpus(self) -> float:
        """Processors in use by all processes."""
        return sum(process.cpus for process in self.processes)

    @property
    def memory(self) -> int:
        """Bytes of all processes."""
        return sum(process.memory for process in self.processes)
