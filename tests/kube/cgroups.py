"""Cgroups of the nodes, in each hierarchy that the machine has."""

from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def make(name: str) -> None:
    """Make a cgroup with all processors and all memory."""
    for hierarchy in _hierarchies():
        group = hierarchy
        for part in Path(name).parts:
            above, group = group, group / part
            group.mkdir(exist_ok=True)
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if (group / setting).exists() and not (group / setting).read_text().strip():
                    (group / setting).write_text((above / setting).read_text())


def remove(name: str) -> None:
    """Remove a cgroup, whose processes have ended, and those in it."""
    for hierarchy in _hierarchies():
        for group in sorted((hierarchy / name).glob("**/"), reverse=True):
            with suppress(OSError):
                group.rmdir()


def _hierarchies() -> list[Path]:
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [path.parent for path in ROOT.glob("*/cgroup.procs")]
