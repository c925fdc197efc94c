"""How long the import of tfdeploy takes, against the one of Pulumi; the start of the interpreter counts for neither.

Processor time: other programs on the machine hardly change it. Modules that only some commands need are imported later.
"""

import sys

from .pairs import by_turns
from .processes import run as run_command
from .table import Row, ratio

_PAIRS = 25
_OURS = "from tfdeploy import TensorFlowCluster"
_PEER = "import pulumi"
_PROGRAM = "import time; begun = time.process_time(); {}; print(time.process_time() - begun)"


def run() -> list[Row]:
    """Fresh interpreters by turns; the first of each only warms the caches."""
    for statement in (_OURS, _PEER):
        _seconds(statement)
    ours, peer = by_turns(_PAIRS, "import", lambda: _seconds(_OURS), lambda: _seconds(_PEER))
    return [ratio("`from tfdeploy import TensorFlowCluster`, against `import pulumi`: processor time", ours, peer, 1.1)]


def _seconds(statement: str) -> float:
    return float(run_command(sys.executable, "-c", _PROGRAM.format(statement)))
