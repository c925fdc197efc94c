"""The child process of a launcher: it never outlives the launcher, and is stopped with all of its children.

The child leads a process group. It is started through a small step (`parent_death.py`) that asks the kernel to kill it when the
launcher dies, for whatever reason. Processes that the child leaves behind are killed by the next launcher or by the backend, which
find them by the note `child.json` (group, start time, boot).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

from ..run_state import TaskExit
from .memory import MemoryWatch, group_members

MARK = "TFDEPLOY_CHILD"
"""Every process of a child has the child's mark in this environment variable."""

_OWN_GROUP: Dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
"""A group in the launcher's session: Linux schedules each session as one group (autogroups), and a task in a separate session loses
about 10 % of its training steps (docs/decisions/speed.md). Python before 3.11 starts a group only together with a session."""

_NOTE_BYTES = 256


def wait_for_signal(numbers: Set[signal.Signals], seconds: float) -> int:
    """Wait for one of these blocked signals, and return its number; 0 for none. SIGALRM must be blocked too, in all threads.

    `sigtimedwait` is not used: when SIGCONT interrupts it after its time, as for a container that was frozen, Python returns an
    uninitialized `struct_siginfo`, and its number may be that of SIGINT.
    """
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    number = signal.sigwait({*numbers, signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 0)
    return 0 if number == signal.SIGALRM else number


def signal_name(number: int) -> str:
    """The name of a signal, as `kill -l` lists it. Python names only the first and the last of the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        is_real_time = signal.SIGRTMIN < number < signal.SIGRTMAX
        return f"SIGRTMIN+{number - signal.SIGRTMIN}" if is_real_time else f"SIG{number}"


def wake_main_thread() -> None:
    """End the main thread's `wait_for_signal`, or its next one, which takes this signal for that of its timer."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)


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

    Once the leader has ended, the group's number may be used again by other processes. So each member must then have the child's mark
    in its environment.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        data = json.loads(note.read_text())
        leader = start_time(data["group"])
        if start_time(1).partition("@")[2] != data["boot"]:
            pass
        elif leader == data["start"]:
            _signal_group(data["group"], signal.SIGKILL)
        elif not leader:
            for pid in group_members(data["group"]):
                _kill_marked(pid, data["mark"])
    with contextlib.suppress(OSError):
        note.unlink()


def _kill_marked(pid: int, mark: str) -> None:
    with contextlib.suppress(OSError):
        if f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            os.kill(pid, signal.SIGKILL)


def _write_note(note: Path, content: Dict[str, Any]) -> None:
    """Write the note, always of the same size, in place: the second time it needs no space on the disk."""
    data = json.dumps(content).ljust(_NOTE_BYTES).encode()
    descriptor = os.open(str(note), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, data, 0)
    finally:
        os.close(descriptor)


def _has_ended(pid: int) -> bool:
    """Whether a child of this process has ended. It is not reaped, so that its number is not used again."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def reap_orphans(child: int) -> None:
    """As process 1 of a container, reap orphaned zombies, except our own child."""
    while os.getpid() == 1:
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid == child:
            return
        os.waitpid(dead.si_pid, 0)


class Child:
    """A running command."""

    def __init__(self, command: List[str], env: Dict[str, str], folder: Path, note: Path, memory: int) -> None:
        """Start `command` in `folder`; `memory` limits the bytes of its group; 0 means unlimited.

        Raises:
            OSError: it cannot be started, or `note` cannot be written; then no process is left.
        """
        self._note = note
        self._lock = threading.Lock()
        mark = os.urandom(16).hex()
        _write_note(note, {"group": 0, "start": "", "boot": "", "mark": mark})  # first, as a process needs an owner
        step = [sys.executable, "-I", "-S", str(Path(sys.argv[0]).resolve()), "lead", str(os.getpid())]
        self.process = subprocess.Popen(
            [*step, *command],
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
        self._memory = MemoryWatch(self.process.pid, memory, lambda: self.signal(signal.SIGKILL))

    def signal(self, number: int) -> None:
        """Send a signal to the child and all of its group. After its end there may be another group of that number."""
        with self._lock:
            if self.process.returncode is None:
                _signal_group(self.process.pid, number)

    def exit_code(self) -> Optional[int]:
        """How the child ended, negative for a signal; None while it runs. At its end the rest of its group is killed."""
        with self._lock:
            if self.process.returncode is None and _has_ended(self.process.pid):
                _signal_group(self.process.pid, signal.SIGKILL)
                self.process.poll()
            return self.process.returncode

    def end(self) -> Optional[TaskExit]:
        """How the child ended; None while it runs."""
        code = self.exit_code()
        if code is None:
            return None
        name = signal_name(-code) if code < 0 else ""
        return TaskExit(code if code >= 0 else 128 - code, name, self._memory.is_out_of_memory(code))

    def forget(self) -> None:
        """Remove the note: the group has ended."""
        with contextlib.suppress(OSError):
            self._note.unlink()
