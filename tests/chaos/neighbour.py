"""The cluster beside the one under test: another login's, with the same words, which must notice nothing."""

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.chaos.cluster import Cluster
from tests.chaos.schedule import Kind, Step
from tests.waiting import until

SAME_WORDS = True
"""Whether it has the same project, stack and name."""

RECOVERY_SECONDS = 120.0
"""After its machine has failed, its programs must run within this time."""

SLEEPER = """\
import os, pathlib, time
folder = pathlib.Path(os.environ["COUNTER"])
with (folder / "starts").open("a") as starts:
    starts.write(os.environ["TFDEPLOY_HOSTNAME"] + "\\n")
time.sleep(100_000)
"""


class Neighbour:
    """The other owner: brings the cluster up, destroys it, and sees whether it has changed meanwhile."""

    FAULTS = ("other_up", "other_destroy")

    def __init__(self, make: Callable[[Path, str], Cluster], folder: Path) -> None:
        self.cluster = make(folder, "test" if SAME_WORDS else "other")
        self.cluster.tasks = 'workers=1, flags="always"'
        self._exists = False
        self._starts = 0

    def __enter__(self) -> "Neighbour":
        self.cluster.write(clock_steps=False)
        (self.cluster.project.program / "code/train.py").write_text(SLEEPER)
        self.cluster.project.init()
        self._up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cluster.close()

    def happen(self, step: Step) -> str:
        """Its owner's own command: what was done."""
        if step.fault == "other_destroy" and self._exists:
            self.cluster.command("destroy", must=True)
            self._exists = False
            return "destroyed"
        self._up()
        return "up"

    def changes(self, machines_failed: bool = False) -> list[str]:
        """What is not as its owner left it. Where their machine has failed, its programs start again."""
        failed = [f"`{name}` failed: {output[-400:]}" for name, output in self.cluster.story.failed.items()]
        self.cluster.story.failed.clear()
        if not self._exists:
            return failed
        shown = self.cluster.shown()
        deadline = time.monotonic() + RECOVERY_SECONDS
        while machines_failed and shown.get("state") != "running" and time.monotonic() < deadline:
            shown = self.cluster.shown()
        state, starts = shown.get("state"), self._count()
        changed = (
            [f"its programs were started again ({self._starts} starts, now {starts})"]
            if starts != self._starts and not machines_failed
            else []
        )
        self._starts = starts
        return failed + changed + ([] if state == "running" else [f"it is {state}: {shown.get('reason')}"])

    def _up(self) -> None:
        self.cluster.command("refresh" if self._exists else "up", must=True)
        if not self._exists:
            self._exists = True
            goal = self._starts + 1
            until(lambda: self._count() >= goal, "the task of the cluster beside it runs", seconds=100)
            self._starts = self._count()

    def _count(self) -> int:
        path = self.cluster.folder / "starts"
        return len(path.read_text().split()) if path.exists() else 0


OTHER: dict[str, Kind] = {name: Kind(during=False) for name in Neighbour.FAULTS}
