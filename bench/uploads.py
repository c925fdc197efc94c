"""Processor time of what uploads checkpoints of 20 MiB while a program saves them: the launcher, which sends, and the controller, which
writes; less that of the same without uploads for as many seconds.

Steps a second would not do: they scatter by more than an upload costs. With one upload in 300 s, the default, the limit of 0.5 s of a
core is 0.2 % of the speed.
"""

import shutil
import time
from pathlib import Path

from .engine import CLUSTER, TASKS, UP, Project, project, workplace
from .observed import Cluster, busy_seconds, controller, task_processes
from .pairs import log
from .processes import until
from .table import Row, limit

_MIB = 20
_UPLOADS = 5
_ROUNDS = 3


def run() -> list[Row]:
    """With an upload of each checkpoint, against none for as many seconds."""
    measure = f"processor time of a core for the upload of a checkpoint of {_MIB} MiB (worst of the rounds)"
    return [limit(measure, [_cost() for _ in range(_ROUNDS)], 0.5, " s")]


def _cost() -> float:
    """Seconds of processor time for one upload."""
    seconds, busy = _measured("3s", 0.0)
    _, idle = _measured("0", seconds)
    cost = (busy - idle) / _UPLOADS
    log(f"{_UPLOADS} uploads in {seconds:.1f} s: {busy:.2f} s of processor time, without them {idle:.2f} s")
    return cost


def _measured(interval: str, seconds: float) -> tuple[float, float]:
    """Seconds that pass, and processor time of launcher and controller, until some uploads have arrived; `seconds` without uploads."""
    config = {
        "tfdeploy:workers": 1,
        "tfdeploy:command": ["python", "stamped.py", "saving.py", str(_MIB), "3"],
        "tfdeploy:wait": "0",
        "tfdeploy:checkpoint_upload_interval": interval,
    }
    with workplace() as place, project(place, CLUSTER, "uploads", config) as made:
        for file in ("stamped.py", "saving.py"):
            shutil.copy(TASKS / file, made.code)
        made.pulumi(*UP)
        return _until(made, seconds)


def _until(made: Project, seconds: float) -> tuple[float, float]:
    cluster, record = Cluster(made.home), made.home / "record"
    arrived: set[str] = set()
    until(lambda: seconds or _arrived(record, arrived), "the first upload", cluster)
    launchers = [process for process in task_processes(made.home) if "launch" in process.cmdline()]
    processes = [controller(made.home), *launchers]
    begun, before, known = time.monotonic(), busy_seconds(processes), len(arrived)

    def is_over() -> bool:
        if seconds:
            return time.monotonic() > begun + seconds
        return len(_arrived(record, arrived)) == known + _UPLOADS

    until(is_over, f"{_UPLOADS} uploads", cluster)
    return time.monotonic() - begun, busy_seconds(processes) - before


def _arrived(record: Path, known: set[str]) -> set[str]:
    """Add the names of the checkpoints that the record has now to those that it has had."""
    known |= {path.name for path in record.rglob("ckpt-*.index")}
    return known
