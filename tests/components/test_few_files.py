"""A shell in which few files may be open, and more could be: `ulimit -Sn 64`."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from tests.components.conftest import WAITS, Standing

cluster = Standing(pathlib.Path(sys.argv[3]), "few")
try:
    cluster.declare(WAITS, workers=6)
    cluster.validate()
    cluster.stand()
    cluster.until_started("worker-5")
    limits = pathlib.Path(f"/proc/{cluster.pid('supervisord')}/limits").read_text()
    print(*limits.partition("Max open files")[2].split()[:2])
    cluster.finish()
finally:
    cluster.clear()
"""


def test_the_limit_is_raised_as_far_as_the_hard_limit_allows(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "64", "300", str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (0, "300 300\n"), completed.stderr
