"""What is observed of one running task: the dump of its program, and the progress that it has printed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..agent.run_state import WORKERS
from ..agent.task_dump import ProcessDump, TaskDump, Wait
from .peer_traffic import total_rate
from .program_problems import LIBRARY
from .progress import Progress

IDLE_CPUS, IDLE_BYTES = 0.05, 64 * 1024
"""A task that uses less, of processors and of bytes a second, is idle. A server of TensorFlow that waits uses 0.005 processors."""

STALL_PAUSES, STALL_SECONDS, SILENT_SECONDS = 10, 30.0, 60.0
"""A training stalls when it is idle and no step was printed for so many times the usual pause, and for so long; where no pause is
known, for longer."""

_CHIEF = "chief"


@dataclass(frozen=True)
class TaskSight:
    """What is observed of one running task."""

    hostname: str
    job: str
    dump: TaskDump | None
    """None where its launcher has sent none."""
    progress: Progress
    peers: Mapping[str, str] = field(default_factory=dict)
    """Address to the task that is at the other end."""

    @property
    def trains(self) -> bool:
        """Whether its program makes steps."""
        return self.job in (_CHIEF, *WORKERS)

    @property
    def main(self) -> ProcessDump | None:
        """The process that trains."""
        return self.dump.processes[0] if self.dump and self.dump.processes else None

    @property
    def wait(self) -> Wait:
        """What its main thread waits in."""
        return (self.main and self.main.wait) or Wait()

    @property
    def where(self) -> str:
        """What its main thread waits in: `in read() of /data/part-3 (train.py:33 in load)`."""
        call = f"in {self.wait.call}()" if self.wait.call else "idle"
        target = self.peers.get(self.wait.target, self.wait.target)
        target = f" of {target}" if target else ""
        return f"{call}{target}{f' ({self.place})' if self.place else ''}"

    @property
    def place(self) -> str:
        """Where its main thread is in the user's program."""
        return place_in(self.dump.python[0].frames if self.dump and self.dump.python else [])

    @property
    def is_idle(self) -> bool:
        """Whether it uses no processor, and exchanges and reads nothing."""
        if self.dump is None or not self.dump.processes:
            return False
        transferred = sum(process.transferred for process in self.dump.processes)
        return self.dump.cpus < IDLE_CPUS and max(transferred, total_rate(self.dump)) < IDLE_BYTES

    def stalled_seconds(self, now: float) -> float:
        """For how long it has made no step, where that is far longer than usual and it is idle; else 0."""
        if not self.is_idle:
            return 0.0
        if self.progress.stepped_at is None:
            return self.wait.seconds if self.wait.seconds >= SILENT_SECONDS else 0.0
        return self.silent_seconds(now)

    def silent_seconds(self, now: float) -> float:
        """For how long it has printed no step, where it has printed some and that is far longer than usual; else 0."""
        progress = self.progress
        age = now - (progress.stepped_at or now)
        longest = max(STALL_SECONDS, STALL_PAUSES * progress.pause) if progress.readings > 2 else SILENT_SECONDS
        return age if age >= longest and progress.part != 1 else 0.0


def place_in(frames: Sequence[str]) -> str:
    """The innermost frame of the user's program, without its folder; of any module where there is none."""
    own = [frame for frame in frames if not LIBRARY.search(frame)] or frames
    return own[0].rpartition("/")[2] if own else ""
