"""The controller under ten thousand lines of 80 bytes a second, from four programs, while `up` waits and looks for a metric: its load
over ten seconds, and the record compared with what was printed.
"""

import time
from pathlib import Path

from .engine import CLUSTER, UP, Project, project, workplace
from .observed import Cluster, busy_seconds, controller, output, reader
from .pairs import log
from .processes import BenchError, Process, until
from .table import Row, limit
from .tasks.flood import bursts

_WORKERS = 4
_RATE = 10_000
_SECONDS = 15
_MEASURED = 10.0
_FAST_ENOUGH = 0.95
_PATIENCE = 180.0
_FLOODS = 3
_HOSTNAMES = [f"worker-{index}" for index in range(_WORKERS)]


def run() -> list[Row]:
    """Three floods, each of a new cluster."""
    floods = [_flood() for _ in range(_FLOODS)]
    measure = f"the controller under {_RATE:,} lines a second from {_WORKERS} workers"
    return [
        limit(f"{measure}, while `up` waits: share of a core", [share for share, _ in floods], 0.2, ""),
        limit(f"{measure}: lines lost or changed", [lost for _, lost in floods], 0, ""),
    ]


def _flood() -> tuple[float, int]:
    """The controller's share of a core, and how many lines were lost or changed."""
    rate = _RATE // _WORKERS
    config = {"tfdeploy:workers": _WORKERS, "tfdeploy:command": ["python", "flood.py", str(rate), str(_SECONDS)]}
    with workplace() as place, project(place, CLUSTER, "flood", config) as made:
        made.ship("flood.py")
        call = made.start(*UP)
        share = _share(made, call)
        call.finish(_PATIENCE)
        expected = "".join(bursts(rate, _SECONDS)).encode()
        lost = sum(_differing(expected, output(made.home, hostname)) for hostname in _HOSTNAMES)
    log(f"controller: {share:.3f} of a core; {lost} lines lost")
    return share, lost


def _share(made: Project, call: Process) -> float:
    """The controller's processor time over ten seconds of the flood.

    Raises:
        BenchError: the lines did not come as fast as they should.
    """
    first = reader(made.home, _HOSTNAMES[0])
    until(lambda: any(True for _ in first.more()), "a first line", Cluster(made.home), call)
    process = controller(made.home)
    time.sleep(1.0)
    begun, busy_before, lines_before = time.monotonic(), busy_seconds([process]), _lines(made.home)
    time.sleep(_MEASURED)
    ended, busy, lines = time.monotonic(), busy_seconds([process]), _lines(made.home)
    rate = (lines - lines_before) / (ended - begun)
    log(f"{rate:.0f} lines a second")
    if rate < _FAST_ENOUGH * _RATE:
        raise BenchError(f"the flood brought {rate:.0f} lines a second instead of {_RATE}: the machine is too busy")
    return (busy - busy_before) / (ended - begun)


def _lines(home: Path) -> int:
    return sum(output(home, hostname).count(b"\n") for hostname in _HOSTNAMES)


def _differing(expected: bytes, actual: bytes) -> int:
    """How many lines are not as they were printed."""
    wanted, got = expected.splitlines(), actual.splitlines()
    wrong = sum(line != other for line, other in zip(wanted, got, strict=False))
    return wrong + abs(len(wanted) - len(got))
