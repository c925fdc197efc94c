"""How long `import tfdeploy` takes, against `import pulumi`; the start of the interpreter counts for neither."""

import subprocess
import sys

from .pairs import by_turns
from .table import Row, ratio

_PAIRS = 15
_PROGRAM = "import time; begun = time.perf_counter(); import {module}; print(time.perf_counter() - begun)"


def run() -> list[Row]:
    """Fresh interpreters by turns; the first of each only warms the caches."""
    for module in ("tfdeploy", "pulumi"):
        _seconds(module)
    ours, peer = by_turns(_PAIRS, "import", lambda: _seconds("tfdeploy"), lambda: _seconds("pulumi"))
    return [ratio("`import tfdeploy`, against `import pulumi`", ours, peer, 1.2)]


def _seconds(module: str) -> float:
    command = [sys.executable, "-c", _PROGRAM.format(module=module)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
