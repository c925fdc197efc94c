"""How long the import of tfdeploy takes, against the one of Pulumi; the start of the interpreter counts for neither.

Processor time is judged: other programs on the machine hardly change it. The time that passes is only published.
"""

import sys

from .pairs import by_turns
from .processes import run as run_command
from .table import Row, ratio

_PAIRS = 25
_TARGET = 1.2
_OURS = "from tfdeploy import TensorFlowCluster"
_PEER = "import pulumi"
_PROGRAM = "import time; begun = time.{clock}(); {statement}; print(time.{clock}() - begun)"
_MEASURE = "`from tfdeploy import TensorFlowCluster`, against `import pulumi`"


def run() -> list[Row]:
    """Fresh interpreters by turns; the first of each only warms the caches."""
    for statement in (_OURS, _PEER):
        _seconds(statement, "perf_counter")
    return [
        _row("process_time", f"{_MEASURE}: processor time", _TARGET),
        _row("perf_counter", f"{_MEASURE}: time that passes", None),
    ]


def _row(clock: str, measure: str, target: float | None) -> Row:
    ours, peer = by_turns(_PAIRS, f"import, {clock}", lambda: _seconds(_OURS, clock), lambda: _seconds(_PEER, clock))
    return ratio(measure, ours, peer, target)


def _seconds(statement: str, clock: str) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(statement=statement, clock=clock)]
    return float(run_command(*command))
