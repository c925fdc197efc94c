"""The tables of machines and tasks with the sentences below them: the output `status`, and `tfdeploy show`."""

from tests.unit.report.test_report import NOON, failed, finished, read, sight, starting, waiting, world
from tests.unit.snapshots import section
from tfdeploy.backends.base import ObservedState

SIGHTS: dict[str, ObservedState] = {
    "nothing exists": sight(None, silent_since=0.0),
    "no run was submitted": sight(None),
    "the engine starts tasks": starting(),
    "a run waits": sight(waiting()),
    "a run": sight(world(), engine={"ps-0": True, "worker-0": True, "worker-1": False}),
    "it succeeded": sight(finished()),
    "it failed": sight(failed()),
    "the controller is gone": sight(world(), silent_since=NOON - 60),
    "all is gone after a success": sight(finished(), silent_since=NOON - 60, engine={}),
}


def tables() -> str:
    """All of it, a section for each sight."""
    return "\n".join(section(title, read(sight).status.splitlines()) for title, sight in SIGHTS.items())
