"""Where a task's child stands: its folder with the code, its port, its environment."""

import fcntl
import os
import random
import re
import shutil
import socket
import zipfile
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from . import wiring

PORTS = range(20000, 32000)
"""Ports to choose from: below those that Linux gives to outgoing connections (32768 and up)."""

SECRET_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""A secret of such a name is an environment variable too, besides its file."""

_ENGINES = ("SUPERVISOR_",)
"""What begins so is the engine's word to the launcher, not to the task."""


class PortTaken(Exception):
    """The port that the user asked for is not free."""


class Port:
    """A port that no other task on this machine takes, held for as long as the launcher lives.

    The hold is a Unix socket in Linux' abstract name space: it is seen by all users, leaves no file, and goes with its
    process.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._hold: Optional[socket.socket] = None
        self.number = 0

    def choose(self, wanted: int, fixed: bool) -> int:
        """`wanted` if it can be had, else (unless `fixed`) any free one.

        Raises:
            PortTaken: the fixed one is not free.
        """
        if self.number and self.number == wanted:
            return wanted
        start = random.randrange(len(PORTS))
        others: List[int] = [] if fixed else [*PORTS[start:], *PORTS[:start]]
        for number in ([wanted] if wanted else []) + others:
            if bindable(number) and self._take(number):
                self.number = number
                return number
        raise PortTaken(f"port {wanted} of {self._host} is taken by another program")

    def _take(self, number: int) -> bool:
        hold = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            hold.bind(f"\0tfdeploy-port-{number}")
        except OSError:
            hold.close()
            return False
        self._hold = hold
        return True


def bindable(number: int) -> bool:
    """TensorFlow's servers listen on every address, so the port must be free on every address."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", number))
        except OSError:
            return False
        return True


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Have the folder to ourselves: waits until the process before us, which may still be busy with its end, has gone."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpack(archive: bytes, folder: Path) -> None:
    """Lay the code out in `folder`, whole or not at all."""
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(str(draft), ignore_errors=True)
    draft.mkdir(parents=True)
    if archive:
        with zipfile.ZipFile(BytesIO(archive)) as bundle:
            for item in bundle.infolist():
                path = Path(bundle.extract(item, str(draft)))
                mode = (item.external_attr >> 16) & 0o777
                if mode and path.is_file():
                    path.chmod(mode)
    draft.replace(folder)


def tidy(work: Path, keep: str) -> None:
    """Remove the folders of earlier runs."""
    for folder in work.iterdir() if work.exists() else []:
        if folder.name != keep:
            shutil.rmtree(str(folder), ignore_errors=True)


def secret_variables(folder: Path) -> Dict[str, str]:
    """The secrets that are environment variables."""
    files = sorted(folder.iterdir()) if folder.exists() else []
    return {path.name: path.read_text() for path in files if SECRET_VARIABLE.fullmatch(path.name)}


def environment(
    base: Mapping[str, str],
    book: Sequence[wiring.Entry],
    task: wiring.Entry,
    run: Dict[str, Any],
    settings: Dict[str, Any],
) -> Dict[str, str]:
    """All that a child finds in its environment."""
    secrets = Path(settings["secrets"])
    path: List[str] = [*run["path"], *filter(None, [base.get("PATH", os.defpath)])]
    return {
        **{name: value for name, value in base.items() if not name.startswith(_ENGINES)},
        "PATH": os.pathsep.join(path),
        **({"CUDA_VISIBLE_DEVICES": settings["gpus"]} if settings["gpus"] is not None else {}),
        "TFDEPLOY_SECRETS": str(secrets),
        **secret_variables(secrets),
        **wiring.environment(book, task, run),
    }
