"""A small disk that can be filled, in a mount namespace of this process."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

DISK_BYTES = 96 * 1024 * 1024
_FIRST_PIECE = 16 * 1024 * 1024
NAMESPACE = "TFDEPLOY_CHAOS_NAMESPACE"


def in_namespace(module: str, arguments: Sequence[str]) -> None:
    """Start this module again in a mount namespace, whose disks end with it; only root can, for others nothing happens."""
    if os.geteuid() == 0 and not os.environ.get(NAMESPACE):
        os.environ[NAMESPACE] = "1"
        command = ["unshare", "--mount", "--propagation", "private", "--", sys.executable, "-m", module, *arguments]
        os.execvp(command[0], command)


class Disk:
    """A file system in memory."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"
        self._lock = threading.Lock()
        size = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)

    def fill(self, spare: int) -> None:
        """Leave no more than this many bytes, in whole pages. A piece that does not fit is not allocated at all, so that pieces get
        smaller."""
        with self._lock, self._filler.open("ab") as filler:
            end, piece = filler.tell(), _FIRST_PIECE
            while piece >= os.statvfs(self._filler).f_frsize:
                status = os.statvfs(self._filler)
                size = min(piece, status.f_bavail * status.f_frsize - spare)
                if size <= 0:
                    return
                try:
                    os.posix_fallocate(filler.fileno(), end, size)
                    end += size
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2

    def free(self) -> None:
        """Have space again."""
        with self._lock:
            self._filler.unlink(missing_ok=True)


def own_disk(folder: Path) -> Disk | None:
    """A disk of its own at this folder; None where this process is not in a mount namespace of its own."""
    folder.mkdir(parents=True)
    return Disk(folder) if os.environ.get(NAMESPACE) else None
