"""The first step of a launcher's child: a process that the kernel kills when the launcher dies, whatever it becomes.

Every start of a program waits for this step, so it imports little.
"""

import ctypes
import errno
import os
import signal
import sys
from contextlib import suppress

NOT_FOUND = 127
"""The exit code for a program that could not be started, as in shells."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 1, 36, 37
_LONGEST_LINE = 256


def die_with_parent(number: int, parent: int) -> None:
    """Have the kernel send signal `number` to this process when its parent dies; send it now when the parent is dead."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Have the kernel make this process the parent of descendants whose own parent ends. Process 1 is that already: in a container also
    of what `docker exec` has started."""
    if os.getpid() != 1:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def adopts_orphans() -> bool:
    """Whether `adopt_orphans` was called in this process."""
    value = ctypes.c_int(0)
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value))
    return bool(value.value)


def _prctl(option: int, argument: object) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0)


def yield_to_programs() -> None:
    """Have Linux schedule this process, and its threads, as a batch process: when it wakes up, it does not interrupt a program that
    trains. `lead` ends this for the program itself."""
    _set_policy("SCHED_BATCH")


def _set_policy(name: str) -> None:
    with suppress(OSError, AttributeError):  # a container may forbid it
        os.sched_setscheduler(0, getattr(os, name), os.sched_param(0))


def lead(parent: str, nice: str, *command: str) -> None:
    """Become the command with this niceness, which dies with the launcher of process id `parent`. Does not return."""
    die_with_parent(signal.SIGKILL, int(parent))
    _set_policy("SCHED_OTHER")
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.nice(int(nice))
        os.execvp(command[0], command)
    except OSError as error:
        print(f"tfdeploy: cannot start {command[0]!r}: {_reason(command[0], error)}", file=sys.stderr, flush=True)
        os._exit(NOT_FOUND)


def _reason(program: str, error: OSError) -> str:
    """Why a program cannot be started. The kernel also reports a missing file where the program of a script's first line is missing."""
    with suppress(OSError):
        if error.errno in (errno.ENOENT, errno.ENOEXEC):
            import shutil  # not needed by a program that can be started

            with open(shutil.which(program) or program, "rb") as file:  # noqa: PTH123, pathlib takes long to load
                first = file.readline(_LONGEST_LINE).rstrip(b"\n")
            if first.startswith(b"#!"):
                return f"its first line names {first[2:].decode(errors='replace').strip(' ')!r}, which cannot be started here"
    return str(error.strerror)
