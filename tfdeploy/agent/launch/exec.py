"""`tfdeploy exec` inside a container: runs a command with the working directory and the environment of the task's program."""

import fcntl
import json
import os
import signal
import struct
import sys
import termios
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..system.parent_death import NOT_FOUND
from ..system.processes import MARK
from .process import start_time

_TERMINAL_VARIABLES = ("TERM", "COLORTERM")
_PROCESS_MARKS = (MARK, "TFDEPLOY_CLUSTER")
"""By these variables tfdeploy finds the processes of a task and of a local cluster, to end them. The user's command is none of them."""

_SIZE_VARIABLES = ("TFDEPLOY_LINES", "TFDEPLOY_COLUMNS")


class ProgramContext(NamedTuple):
    """Where and how a program runs."""

    folder: str
    environment: Dict[str, str]


def program_context(folder: Path, terminal: Mapping[str, str]) -> Optional[ProgramContext]:
    """The context of the program in this launcher's folder, with the terminal's variables; None while no program runs."""
    try:
        note = json.loads((folder / "child.json").read_text())
        if start_time(note["group"]) != note["start"]:
            return None
        process = Path("/proc") / str(note["group"])
        variables = [item.partition(b"=") for item in (process / "environ").read_bytes().split(b"\0")]
        environment = {os.fsdecode(name): os.fsdecode(value) for name, _, value in variables if name}
        for name in _PROCESS_MARKS:
            environment.pop(name, None)
        overrides = {name: terminal[name] for name in _TERMINAL_VARIABLES if name in terminal}
        return ProgramContext(os.readlink(process / "cwd"), {**environment, **overrides})
    except (OSError, ValueError, KeyError):
        return None


def exec_command(folder: Path, command: List[str]) -> int:
    """Become the command; without a program, in the container's own context. Returns only when it cannot be started.

    Its terminal gets the size in TFDEPLOY_LINES and TFDEPLOY_COLUMNS: Docker may lose a size that is set before a command has
    started.
    """
    size = [int(os.environ.pop(name, 0)) for name in _SIZE_VARIABLES]
    if all(size):
        fcntl.ioctl(sys.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    context = program_context(folder, os.environ)
    if context is None:
        print("tfdeploy: the program is not running: the command does not get its environment", file=sys.stderr)
        context = ProgramContext(".", dict(os.environ))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.chdir(context.folder)
        os.execvpe(command[0], command, context.environment)
    except OSError as error:
        print(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}", file=sys.stderr)
    return NOT_FOUND
