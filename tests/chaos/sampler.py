"""Samples of a round's programs, beside the round and without tfdeploy: step counters from files, processes from the kernel's /proc.

/proc has the processes of containers too, and of machines in containers. The ledger's folder in the environment says to which cluster a
process belongs, on every backend.
"""

import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tests.chaos.oracle import INTERVAL, Pulse, Sample
from tests.chaos.training import PULSE, SCRIPT

PROC = Path("/proc")

_NEW_SECONDS = 10.0
"""A process that was another program's for so long stays that: it is not read again."""


class Sampler:
    """Takes samples, for as long as it is entered."""

    def __init__(self, folder: Path) -> None:
        """`folder` is that of the ledger."""
        self.samples: list[Sample] = []
        self._folder = folder
        self._first_seen: dict[str, float] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(INTERVAL):
            self.samples.append(Sample(time.monotonic(), self._pulses(), self._processes()))

    def _pulses(self) -> dict[str, Pulse]:
        pulses = {}
        for path in self._folder.glob(f"*{PULSE}"):
            with suppress(OSError, ValueError):
                start, step = path.read_text().split()
                pulses[path.name.removesuffix(PULSE)] = Pulse(start, int(step))
        return pulses

    def _processes(self) -> dict[str, list[int]]:
        """The processes of each task. Those that were seen one after the other count if the earlier ones still exist after that."""
        now, found = time.monotonic(), defaultdict(list)
        names = [entry.name for entry in PROC.iterdir() if entry.name.isdecimal()]
        self._first_seen = {name: self._first_seen.get(name, now) for name in names}
        for name in names:
            if now - self._first_seen[name] < _NEW_SECONDS and (task := self._task(name)):
                self._first_seen[name] = now
                found[task].append(name)
        return {
            task: [int(name) for name in own if len(own) == 1 or self._task(name) == task]
            for task, own in found.items()
        }

    def _task(self, name: str) -> str:
        """The hostname of the task whose program this process is; empty for none, and for one that has ended."""
        with suppress(OSError):
            arguments = (PROC / name / "cmdline").read_bytes().split(b"\0")
            if arguments[1:2] == [SCRIPT.encode()]:
                variables = dict(
                    pair.partition(b"=")[::2] for pair in (PROC / name / "environ").read_bytes().split(b"\0")
                )
                if variables.get(b"COUNTER") == str(self._folder).encode():
                    return variables.get(b"TFDEPLOY_HOSTNAME", b"").decode()
        return ""
