"""The user ends a run while the disk with its record is full: no program runs on because the record cannot be written."""

from typing import Protocol

import psutil

from tests.chaos.cluster import Story
from tests.chaos.schedule import WORKERS

TASKS = ("ps-0", *(f"worker-{index}" for index in range(WORKERS)))
END_SECONDS = 15.0
"""The grace period of the programs is 5 s."""

STOP, DESTROY = "stop --yes", "destroy"


class Ended(Protocol):
    """What the fault needs of a cluster."""

    story: Story

    def command(self, name: str) -> str: ...
    def note(self, kind: str, task: str = "*") -> None: ...
    def process(self, role: str) -> psutil.Process | None: ...


def end_run(cluster: Ended, name: str) -> None:
    """Call this command, and note programs that run on after it."""
    launchers = filter(None, map(cluster.process, TASKS))
    programs = [program for launcher in launchers for program in launcher.children()]
    has_ended = "was stopped" in cluster.command(name) or name == DESTROY
    _, alive = psutil.wait_procs(programs, END_SECONDS)
    if alive and has_ended:
        cluster.story.failed[f"{name} on a full disk"] = f"{len(alive)} programs run after {END_SECONDS:.0f} s"
    cluster.story.destroy_failed |= name == STOP  # a stopped run stays stopped
    cluster.note("cut")
