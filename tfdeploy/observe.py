"""Look at a cluster, and follow it until its verdict or a deadline."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .agent.states import RUNNING, TENSORBOARD
from .backends.base import Backend, Cluster
from .outline import outline
from .plan import Plan
from .report import Report, report
from .report import over as is_over
from .spec import ClusterSpec

_POLL_SECONDS = 0.5
_PROGRESS_LINES = 20


@dataclass
class Watch:
    """All that a look at one cluster needs."""

    backend: Backend
    cluster: Cluster
    spec: ClusterSpec
    plan: Plan
    token: str = ""
    detached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the user wants to wait no longer."""

    def look(self) -> Report:
        """One look."""
        ask = {"log_lines": max(self.spec.log_lines, _PROGRESS_LINES), "metrics": dict(self.spec.metrics)}
        sight = self.backend.look(self.cluster, self.token, ask)
        return report(outline(self.plan, self.spec), sight)

    def job_before(self) -> Mapping[str, Any] | None:
        """The job that stands now, as the record has it; None where none does."""
        job: Mapping[str, Any] | None = self.backend.look(self.cluster, "", {"log_lines": 0, "metrics": {}}).view["job"]
        return job


async def follow(watch: Watch, seconds: float, say: Callable[[str], None]) -> Report:
    """Look until the job's verdict stands and all its tasks but TensorBoard have ended, or `seconds` have passed; the last look.

    Tasks that only serve have no end to wait for: then until all of them run. Each new line of the task that people look at
    (the chief, else worker 0) goes to `say`. Looking has a thread of its own, so that several clusters wait side by side.
    """
    deadline = time.monotonic() + seconds
    loop = asyncio.get_running_loop()
    progress = _Progress(watch, say)
    with ThreadPoolExecutor(1, thread_name_prefix=f"tfdeploy-{watch.spec.name}") as executor:
        while True:
            seen = await loop.run_in_executor(executor, watch.look)
            progress.tell(seen)
            left = deadline - time.monotonic()
            if over(watch.spec, seen) or left <= 0 or watch.detached.is_set():
                return seen
            try:
                await asyncio.wait_for(watch.detached.wait(), min(_POLL_SECONDS, left))
            except TimeoutError:
                continue


def over(spec: ClusterSpec, seen: Report) -> bool:
    """Whether there is nothing more to wait for."""
    serving = spec.serve and all(row["status"] == RUNNING for row in seen.tasks if row["job"] != TENSORBOARD)
    return serving or is_over(seen)


class _Progress:
    """Tells each line of the task that people look at once, as it comes."""

    def __init__(self, watch: Watch, say: Callable[[str], None]) -> None:
        names = [task.hostname for task in watch.plan.tasks]
        self._hostname = next((name for name in ("chief-0", "worker-0", "gpu-worker-0") if name in names), names[0])
        self._say = say
        self._last: tuple[float, str] = (0.0, "")
        self._words = ""

    def tell(self, seen: Report) -> None:
        lines = seen.timed.get(self._hostname, [])
        for line in [line for line in lines if line[0] > self._last[0]]:
            self._say(f"[{self._hostname}] {line[1]}")
            self._last = line
        words = ", ".join(f"{task['hostname']} {task['status']}" for task in seen.tasks)
        if words != self._words and not lines:
            self._say(words)
        self._words = words
