"""The processes of a cluster, found by their arguments: whoever has its folder may stop one, also from another process of a run."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil

from tests.waiting import PATIENCE


def running(*arguments: str | Path) -> list[int]:
    """The processes that have all these among their arguments, as this process numbers them."""
    wanted = {str(argument).encode() for argument in arguments}
    return [pid for pid in _all() if wanted <= set(_arguments(pid))]


def running_below(folder: Path) -> list[int]:
    """The processes that have a path below a folder among their arguments."""
    return [pid for pid in _all() if any(f"{folder}/".encode() in argument for argument in _arguments(pid))]


def first_of_namespace(*arguments: str | Path) -> int:
    """The process with these arguments that is number 1 to itself; 0 where none is. With it, all processes of its namespace end."""
    return next((pid for pid in running(*arguments) if _numbers(pid)[1:][-1:] == ["1"]), 0)


def end(*arguments: str | Path) -> None:
    """Kill the processes with these arguments, and wait for their end."""
    kill(*running(*arguments))


def kill(*pids: int) -> None:
    """Kill processes, and wait until they and their sockets are gone: one that ends loses its arguments before them."""
    killed = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            killed.append(psutil.Process(pid))
            killed[-1].kill()
    _, remain = psutil.wait_procs(killed, PATIENCE)
    assert not remain, f"not ended: {remain}"


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal; a process that has ended needs none."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _arguments(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


def _numbers(pid: int) -> list[str]:
    """What a process is called in each namespace, from that of this process to its own."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[1:]
    return []
