"""A command in the place of a task's child: its working directory, its environment."""

import fcntl
import json
import os
import signal
import struct
import sys
import termios
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from .child import NOT_FOUND, start_time

_OF_THE_TERMINAL = ("TERM", "COLORTERM")
_SIZE = ("TFDEPLOY_LINES", "TFDEPLOY_COLUMNS")

Place = Tuple[str, Dict[str, str]]
"""A working directory, and an environment."""


def surroundings(folder: Path, terminal: Mapping[str, str]) -> Optional[Place]:
    """Those of the child whose launcher has this folder, with what `terminal` says of itself; None while there is no child."""
    try:
        note = json.loads((folder / "child.json").read_text())
        if start_time(note["group"]) != note["start"]:
            return None
        process = Path("/proc") / str(note["group"])
        found = [item.partition(b"=") for item in (process / "environ").read_bytes().split(b"\0")]
        env = {os.fsdecode(name): os.fsdecode(value) for name, _, value in found if name}
        own = {name: terminal[name] for name in _OF_THE_TERMINAL if name in terminal}
        return os.readlink(process / "cwd"), {**env, **own}
    except (OSError, ValueError, KeyError):
        return None


def enter(folder: Path, command: List[str]) -> int:
    """Become the command; without a child, where the container begins. Returns only when it cannot be started.

    Its terminal gets the size that TFDEPLOY_LINES and TFDEPLOY_COLUMNS tell: an engine may lose the one that it is told before a
    command has started.
    """
    size = [int(os.environ.pop(name, 0)) for name in _SIZE]
    if all(size):
        fcntl.ioctl(sys.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    place = surroundings(folder, os.environ)
    if place is None:
        print("tfdeploy: its program does not run now: the command has not got its environment", file=sys.stderr)
    where, env = place or (".", dict(os.environ))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.chdir(where)
        os.execvpe(command[0], command, env)
    except OSError as error:
        print(f"tfdeploy: cannot start {command[0]!r}: {error.strerror}", file=sys.stderr)
    return NOT_FOUND
