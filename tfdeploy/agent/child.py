"""The one child of a launcher: started so that nothing outlives the launcher, stopped as a whole, its end explained.

The child leads a process group of its own. It is started through a small step (`lead`) that asks the kernel to kill it when the
launcher dies, whatever kills the launcher; what the child's own children leave behind, the next launcher or the backend
finds by the note `child.json` (group, start time, boot) and kills.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set

NOT_FOUND = 127
"""Exit code of a child whose program could not be started, as shells have it."""

_PR_SET_PDEATHSIG = 1
_WATCH_SECONDS = 0.5


def die_with_parent(number: int, parent: int) -> None:
    """Have the kernel send us `number` when our parent process dies; end at once when it is dead already."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def wait_for_signal(numbers: Set[signal.Signals], seconds: float) -> int:
    """Which of these blocked signals came within so many seconds; 0 for none. SIGALRM must be blocked too, in all threads.

    Not by `sigtimedwait`: cut short by SIGCONT after its time, as when a container was frozen, Python hands out a
    `struct_siginfo` that nobody filled in, whose number may be that of SIGINT.
    """
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    came = signal.sigwait({*numbers, signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 0)
    return 0 if came == signal.SIGALRM else came


def lead(parent: str, command: Sequence[str]) -> None:
    """Become the command, bound to the launcher with the process id `parent`. Does not return."""
    die_with_parent(signal.SIGKILL, int(parent))
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(NOT_FOUND)


def start_time(pid: int) -> str:
    """When the kernel started a process, as text that no other process of the same id shares; empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else f"{fields[19]}@{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"
    except OSError:
        return ""


def _group_members(group: int) -> List[int]:
    found = []
    for name in (path.name for path in Path("/proc").iterdir()):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == group and fields[0] != "Z":
                    found.append(int(name))
    return found


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _kernel_kills() -> int:
    """How often the kernel's out-of-memory killer has struck in our own control group (version 2, then 1)."""
    for place in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(place).read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def kill_leftovers(note: Path) -> None:
    """Kill what a child that is gone left running, by the note it was started with."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        data = json.loads(note.read_text())
        same_boot = start_time(1).partition("@")[2] == data["boot"]
        leader_is_other = start_time(data["group"]) not in ("", data["start"])
        if same_boot and not leader_is_other:
            _signal_group(data["group"], signal.SIGKILL)
    with contextlib.suppress(OSError):
        note.unlink()


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def reap_orphans(child: int) -> None:
    """As the first process of a container we are the parent of all that lost theirs: bury the dead, but for our own child."""
    while os.getpid() == 1:
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid == child:
            return
        os.waitpid(dead.si_pid, 0)


class Child:
    """A running command, with its end once it has one."""

    def __init__(self, command: List[str], env: Dict[str, str], folder: Path, note: Path, memory: int) -> None:
        """Start `command` in `folder`; `memory` is the most bytes its whole group may hold, 0 for no limit."""
        zipped = str(Path(sys.argv[0]).resolve())
        step = [sys.executable, "-I", "-S", zipped, "lead", str(os.getpid())]
        self._kills_before = _kernel_kills()
        self._over_memory = False
        self._note = note
        self.process = subprocess.Popen(
            [*step, *command],
            env=env,
            cwd=str(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        start = start_time(self.process.pid)
        note.write_text(json.dumps({"group": self.process.pid, "start": start, "boot": start.partition("@")[2]}))
        if memory:
            threading.Thread(target=self._watch, args=(memory,), daemon=True).start()

    def _watch(self, memory: int) -> None:
        while self.process.poll() is None:
            if sum(map(_resident, _group_members(self.process.pid))) > memory:
                self._over_memory = True
                self.signal(signal.SIGKILL)
                return
            threading.Event().wait(_WATCH_SECONDS)

    def signal(self, number: int) -> None:
        """Send a signal to the child and all of its group."""
        _signal_group(self.process.pid, number)

    def end(self) -> Optional[Dict[str, Any]]:
        """How the child ended: `code` (128 + n for a signal), `signal` (its name or ""), `oom`; None while it runs.

        What is left of its group is killed then.
        """
        code = self.process.poll()
        if code is None:
            return None
        self.signal(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            self._note.unlink()
        killed = code == -signal.SIGKILL
        oom = self._over_memory or (killed and _kernel_kills() > self._kills_before)
        name = signal.Signals(-code).name if code < 0 else ""
        return {"code": code if code >= 0 else 128 - code, "signal": name, "oom": oom}
