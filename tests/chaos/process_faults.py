"""Faults of processes and of the record, for clusters whose processes and folders this computer can reach."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil

from tests.chaos.cluster import Apply, Running, Story
from tests.chaos.schedule import Kind, Step

CONTROLLER, SUPERVISORD = "controller", "supervisord"


class Reachable(Protocol):
    """What these faults need of a cluster."""

    story: Story

    def note(self, kind: str, task: str = "*") -> None: ...
    def process(self, role: str) -> psutil.Process | None: ...
    def note_stored(self, task: str) -> None: ...
    def record_folder(self) -> Path | None: ...


def _program(cluster: Reachable, task: str) -> psutil.Process | None:
    """The process of a task's program."""
    with suppress(psutil.Error, IndexError, AttributeError):
        launcher = cluster.process(task)
        return launcher.children()[0] if launcher else None
    return None


def kill_program(cluster: Reachable, step: Step, running: Running | None) -> str:
    """SIGKILL for a task's program."""
    return _kill(_program(cluster, step.task))


def kill_launcher(cluster: Reachable, step: Step, running: Running | None) -> str:
    """SIGKILL for a launcher; first it is stopped, so that what it has stored can be noted."""
    process = cluster.process(step.task)
    with suppress(psutil.NoSuchProcess):
        if process is not None:
            process.suspend()
            cluster.note_stored(step.task)
            cluster.note("cut", step.task)
    return _kill(process)


def kill(role: str, cluster: Reachable, step: Step, running: Running | None) -> str:
    """SIGKILL for the controller or the supervisord."""
    return _kill(cluster.process(role))


def _kill(process: psutil.Process | None) -> str:
    if process is None:
        return ""
    with suppress(psutil.NoSuchProcess):
        process.kill()
    return f"killed {process.pid}"


def pause(role: str, cluster: Reachable, step: Step, running: Running | None) -> str:
    """SIGSTOP for the controller, or for a launcher where `role` is empty, and SIGCONT later."""
    process = cluster.process(role or step.task)
    if process is None:
        return ""
    suspend_for(cluster.story, step.seconds, [process])
    return f"{process.pid} is stopped for {step.seconds} s"


def suspend_for(story: Story, seconds: float, processes: Sequence[psutil.Process]) -> int:
    """SIGSTOP for these processes, and SIGCONT later; how many of them existed."""
    signalled = [process for process in processes if _signal(process, "suspend")]

    def resume() -> None:
        for process in signalled:
            _signal(process, "resume")

    later(story, seconds, resume)
    return len(signalled)


def _signal(process: psutil.Process, name: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        getattr(process, name)()
        return True
    return False


def later(story: Story, seconds: float, heal: Callable[[], None]) -> None:
    """Heal a fault after so many seconds, and in any case at the end of the faults."""
    timer = threading.Timer(seconds, heal)
    timer.daemon = True
    timer.start()
    story.until = max(story.until, time.monotonic() + seconds)
    story.heals += [heal, timer.cancel]


def damage_record(cluster: Reachable, step: Step, running: Running | None) -> str:
    """The end of a file of the record is cut off, or becomes zeros, as after a power failure; what programs printed is left alone."""
    files = sorted(_damageable(cluster.record_folder()))
    if not files:
        return ""
    path = files[int(step.amount * len(files))]
    size, zeros = path.stat().st_size, step.seconds > 1.7
    count = min(size, 1 + int(step.amount * 997) % 60)
    with path.open("r+b") as file:
        if zeros:
            file.seek(size - count)
            file.write(bytes(count))
        else:
            file.truncate(size - count)
    return f"the last {count} bytes of {path.name} {'are zeros' if zeros else 'are cut off'}"


def _damageable(record: Path | None) -> Iterator[Path]:
    if record is not None:
        yield from record.glob("runs/*/events.jsonl")


PROCESSES: dict[str, tuple[Kind, Apply]] = {
    "kill_program": (Kind(weight=2, tasks=True), kill_program),
    "kill_launcher": (Kind(weight=2, tasks=True), kill_launcher),
    "kill_controller": (Kind(weight=2, touches=False), partial(kill, CONTROLLER)),
    "pause_launcher": (Kind(tasks=True, touches=False), partial(pause, "")),
    "pause_controller": (Kind(touches=False), partial(pause, CONTROLLER)),
    "damage_record": (Kind(touches=False), damage_record),
}
"""Name to what the draw needs to know of a fault, and what it does."""
