"""What tests kill and remove without tfdeploy, which they may have broken."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from tfdeploy.backends.local.paths import Places
from tfdeploy.backends.local.supervisor import marked


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes, of which some may have ended since they were listed."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def remove_local_cluster(home: Path) -> None:
    """Kill the processes of a local cluster, and remove its lock."""
    kill_all(marked(home))
    Places(str(home)).lock.unlink(missing_ok=True)
