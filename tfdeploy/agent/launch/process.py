"""The child process of a launcher: it never outlives the launcher, and is stopped with all of its children.

The child leads a process group. It is started through a small step (`parent_death.py`) that asks the kernel to kill it when the
launcher dies, for whatever reason. At its end the launcher kills all that it has started (`attempt_processes`). What the child of a
killed launcher leaves behind is killed by the next launcher or by the backend, which find it by the note `child.json` (group, start
time, boot, mark).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..model.run_state import Ended
from ..model.settings import Limits
from ..system.parent_death import adopts_orphans
from ..system.polling import wait_until
from ..system.processes import CLUSTER_MARK, MARK, environment_marks, process_stats
from ..system.signals import signal_name
from .memory import MemoryWatch

_LEAVE_SECONDS = 1.0
"""What a program has started may end by itself for so long after the success of the program, as the end of a pipe does."""

_MAX_COMMANDS, _MAX_COMMAND = 5, 200
"""So many command lines of processes that were killed are reported, of so many characters."""

_OWN_GROUP: Dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
"""A group in the launcher's session: Linux schedules each session as one group (autogroups), and a task in a separate session loses
about 10 % of its training steps (design/speed.md). Python before 3.11 starts a group only together with a session."""

_NOTE_BYTES = 256


def boot_id() -> str:
    """What distinguishes this start of the machine from others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> str:
    """When a process was started, as text that is unique for its process id; empty when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else f"{fields[19]}@{boot_id()}"
    except OSError:
        return ""


def kill_leftovers(note: Path) -> None:
    """Kill the processes that an earlier child left behind, by its note.

    Once the leader has ended, the group's number may be used again by other processes. So each process must then have the child's mark
    in its environment.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        data = json.loads(note.read_text())
        if start_time(1).partition("@")[2] == data["boot"]:
            group = data["group"] if start_time(data["group"]) == data["start"] else 0
            if group:
                _signal_group(group, signal.SIGKILL)
            _kill(attempt_processes(group, data["mark"]))
    with contextlib.suppress(OSError):
        note.unlink()


def attempt_processes(group: int, mark: str, adopter: int = 0) -> List[int]:
    """What a child has started, whatever session it is in: the processes of its group (0 for none), those with its mark, the orphans
    that the launcher `adopter` has adopted, and the descendants of these. Those of a cluster that it has started are not included."""
    stats = process_stats()
    marks = {pid: environment_marks(pid) for pid in stats}
    cluster = os.environ.get(CLUSTER_MARK, "")
    others = {pid for pid, (child, home) in marks.items() if child not in ("", mark) or home not in ("", cluster)}
    parents = {pid: int(stat[1]) for pid, stat in stats.items()}
    groups = {pid: int(stat[2]) for pid, stat in stats.items()}
    own = {pid for pid in stats if 0 < group == groups[pid] or "" != mark == marks[pid][0]}
    own |= {pid for pid in stats if 0 < adopter == parents[pid] and groups[pid] != os.getpgrp()}
    more = own
    while more - others:
        own = (own | more) - others
        more = {pid for pid in stats if parents[pid] in own} - own
    return [pid for pid in own if stats[pid][0] != "Z"]


def _command_line(pid: int) -> str:
    """The command line of a process; empty where it has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return " ".join(words).strip()[:_MAX_COMMAND]
    return ""


def _kill(pids: List[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _write_note(note: Path, content: Dict[str, Any]) -> None:
    """Write the note, always of the same size, in place: the second time it needs no space on the disk."""
    data = json.dumps(content).ljust(_NOTE_BYTES).encode()
    descriptor = os.open(str(note), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, data, 0)
    finally:
        os.close(descriptor)


def _ended_code(pid: int) -> Optional[int]:
    """How a child of this process has ended, negative for a signal; None while it runs. It is not reaped, so that its number is not
    used again."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if end is None:
        return None
    return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def reap_orphans(child: int) -> None:
    """Reap zombies that this process has adopted, as process 1 of a container does, except our own child."""
    while os.getpid() == 1 or adopts_orphans():
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid == child:
            return
        os.waitpid(dead.si_pid, 0)


class Child:
    """A running command."""

    def __init__(self, command: List[str], env: Dict[str, str], folder: Path, note: Path, limits: Limits) -> None:
        """Start `command` in `folder`, with these limits for its group.

        Raises:
            OSError: it cannot be started, or `note` cannot be written; then no process is left.
        """
        self.left: List[str] = []
        """The command lines of processes that it had left behind and that were killed."""
        self._note = note
        self._lock = threading.Lock()
        self._mark = mark = os.urandom(16).hex()
        _write_note(note, {"group": 0, "start": "", "boot": "", "mark": mark})  # first, as a process needs an owner
        step = [sys.executable, "-I", "-S", str(Path(sys.argv[0]).resolve()), "lead"]
        self.process = subprocess.Popen(
            [*step, str(os.getpid()), str(limits.nice), *command],
            env={**env, MARK: mark},
            cwd=str(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **_OWN_GROUP,
        )
        start = start_time(self.process.pid)
        group = {"group": self.process.pid, "start": start, "boot": start.partition("@")[2]}
        try:
            _write_note(note, {**group, "mark": mark})
        except OSError:
            with self.process:
                self.signal(signal.SIGKILL)
            raise
        self._memory = MemoryWatch(self.process.pid, limits.memory, lambda: self.signal(signal.SIGKILL))

    def signal(self, number: int) -> None:
        """Send a signal to the child and all of its group. After its end there may be another group of that number."""
        with self._lock:
            if self.process.returncode is None:
                _signal_group(self.process.pid, number)

    def exit_code(self) -> Optional[int]:
        """How the child ended, negative for a signal; None while it runs. Until `finish` its number is not used again."""
        with self._lock:
            code: Optional[int] = self.process.returncode
            return _ended_code(self.process.pid) if code is None else code

    def finish(self) -> None:
        """After its end, kill what it has started. After a success that may end by itself for a moment."""
        with self._lock:
            seconds = _LEAVE_SECONDS if _ended_code(self.process.pid) == 0 else 0.0
            if not wait_until(lambda: not self._rest(), seconds):
                self.left = list(filter(None, map(_command_line, self._rest())))[:_MAX_COMMANDS]
                wait_until(self._has_killed, _LEAVE_SECONDS)
            self.process.wait()

    def _has_killed(self) -> bool:
        """Whether no process is left after all were killed: one may have started another one meanwhile."""
        _signal_group(self.process.pid, signal.SIGKILL)
        _kill(self._rest())
        return not self._rest()

    def _rest(self) -> List[int]:
        """The processes that this child has started and that have not ended."""
        return attempt_processes(self.process.pid, self._mark, os.getpid() if adopts_orphans() else 0)

    def end(self) -> Optional[Ended]:
        """How the child ended; None while it runs."""
        code = self.exit_code()
        if code is None:
            return None
        name = signal_name(-code) if code < 0 else ""
        return Ended(code if code >= 0 else 128 - code, name, self._memory.is_out_of_memory(code))

    def forget(self) -> None:
        """Remove the note: the group has ended."""
        with contextlib.suppress(OSError):
            self._note.unlink()
