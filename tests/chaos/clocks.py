"""Clocks of controllers and launchers that a test shifts, so that half an hour is over in an instant.

What is scaled: every deadline that the agent computes from `time.time`, `time.monotonic` or `CLOCK_BOOTTIME`. What is not: how long
the kernel has it wait (sleeps, timeouts of sockets and of `select`), and the training, which takes its steps by the real clock. So a
shift shows what the agent decides after so long a silence, and not how much output the program has printed in that time.

On `local` controller and launchers have these clocks. In containers only launchers have: a controller has no volumes of the user's.
"""

from contextlib import suppress
from pathlib import Path

import psutil

from tests.chaos.schedule import Step

AWAY_SECONDS = 1800

_PROGRAM = """\
import pathlib, runpy, sys, time
clocks = pathlib.Path({clocks!r})
def shift(function, *shown):
    return lambda *arguments: function(*arguments) + sum(float(clocks.read_text().split()[one]) for one in shown)
time.time = shift(time.time, 0, 1, 2)
time.monotonic = shift(time.monotonic, 1)
time.clock_gettime = shift(time.clock_gettime, 1, 2)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Controllers and launchers begin with this: their clocks differ from the real ones by the seconds in a file."""

_SITE = """\
import os, pathlib, shlex, sys
if "supervisor.supervisord" in sys.orig_argv:
    execve = os.execve
    def shifted(path, argv, env):
        script = pathlib.Path(argv[1])
        if script.suffix == ".sh":  # `exec python -I -S agent.pyz …`
            words = shlex.split(script.read_text())[1:]
            execve(words[0], [*words[:3], "-c", {program!r}, *words[3:]], env)
        execve(path, argv, env)
    os.execve = shifted
"""
"""Python runs this in each of its processes. What a supervisord starts gets other clocks; Pulumi has the real ones."""

PYTHON = "/usr/local/bin/python3"
"""In a container this is found before the image's own."""

_WRAPPER = """\
#!/usr/bin/python3.11 -IS
import os, sys
options = sys.argv[1:3]
program = ["-c", {program!r}] if options == ["-I", "-S"] else []
os.execv("/usr/bin/python3.11", ["/usr/bin/python3.11", *options, *program, *sys.argv[3:]])
"""


class ShiftedClocks:
    """Three numbers of seconds in a file: a step of the wall clock, time that has passed, time in which the computer was suspended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "clocks"
        self._shifts = [0, 0, 0]

    def site(self) -> Path:
        """A new folder for PYTHONPATH, which has the supervisord's children begin so."""
        site = self._folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(_SITE.format(program=self._program()))
        return site

    def python(self) -> Path:
        """A program for `PYTHON` in containers of the tests' images; they must have the folder at the same path."""
        path = self._folder / "python3"
        path.write_text(_WRAPPER.format(program=self._program()))
        path.chmod(0o755)
        return path

    def _program(self) -> str:
        self._write()
        return _PROGRAM.format(clocks=str(self._file))

    def step_wall(self, seconds: int) -> int:
        """Let the wall clock differ by this from the real one; by what it did before."""
        before, self._shifts[0] = self._shifts[0], seconds
        self._write()
        return before

    def pass_time(self, seconds: int) -> None:
        """So much time has passed."""
        self._shifts[1] += seconds
        self._write()

    def sleep(self, seconds: int) -> None:
        """The computer was suspended for so long: the monotonic clock does not count it."""
        self._shifts[2] += seconds
        self._write()

    def _write(self) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(" ".join(map(str, self._shifts)))
        draft.rename(self._file)


def is_shifted(process: psutil.Process | None) -> bool:
    """Whether a process runs with such clocks."""
    with suppress(psutil.Error):
        return process is not None and "clocks = pathlib.Path" in " ".join(process.cmdline())
    return False


def away_seconds(step: Step) -> float:
    """How long by the real clock something is away that is away for `AWAY_SECONDS` by these ones."""
    return 2 + 2 * step.seconds


def silence_seconds(step: Step) -> float:
    """The same for machines: by Swarm's clock, which is not shifted, long enough to give a node up, which takes it 15 s."""
    return 4 + 10 * step.seconds
