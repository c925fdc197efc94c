"""The processes of a machine, from `/proc`."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Dict, List, Tuple

MARK, CLUSTER_MARK = "TFDEPLOY_CHILD", "TFDEPLOY_CLUSTER"
"""Every process of a child has the child's mark in the first variable of its environment. The second one is that of a cluster on this
computer: a program may start one, which outlives it."""

_PROC = Path("/proc")


def members(group: int) -> Dict[int, List[str]]:
    """The processes of the group, and their descendants in other groups, with the fields of `stat` from the state on."""
    stats = process_stats()
    members = {pid for pid, fields in stats.items() if pid == group or int(fields[2]) == group}
    while True:
        more = {pid for pid, fields in stats.items() if int(fields[1]) in members} - members
        if not more:
            return {pid: stats[pid] for pid in members}
        members |= more


def process_stats() -> Dict[int, List[str]]:
    """All processes of the machine, with the fields of `stat` from the state on."""
    stats: Dict[int, List[str]] = {}
    for path in _PROC.iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                stats[int(path.name)] = (path / "stat").read_text().rpartition(")")[2].split()
    return stats


def environment_marks(pid: int) -> Tuple[str, str]:
    """Both marks in the environment of a process; empty where it has none, or cannot be read."""
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return "", ""
    values = dict(item.partition(b"=")[::2] for item in variables)
    return os.fsdecode(values.get(MARK.encode(), b"")), os.fsdecode(values.get(CLUSTER_MARK.encode(), b""))
