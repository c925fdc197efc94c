"""The Python that Pulumi starts in these tests: a fork is what a process would be, and ends with its client."""

import os
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psutil
import pytest

from tests import pulumi_python
from tests.pulumi_python import forked_python, plain_python, server_time
from tests.waiting import until

PRINTS_ITSELF = """
import json, os, signal, sys, threading
main = sys.modules["__main__"]
print(json.dumps({
    "arguments": [sys.argv, sys.orig_argv[1:], __name__, __file__, main.__file__],
    "path": sys.path,
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "files": sorted(os.listdir("/proc/self/fd"))[:3],
    "streams": [[each.encoding, each.errors, each.newlines, each.line_buffering, each.write_through, type(each.buffer).__name__]
                for each in (sys.stdin, sys.stdout, sys.stderr)],
    "signals": {each.name: str(signal.getsignal(each)) for each in signal.valid_signals() if each < 32},
    "threads": [each.name for each in threading.enumerate()],
    "ours": [each for each in sys.modules if each.split(".")[0] in ("tests", "tfdeploy")],
}, indent=1, sort_keys=True))
print("an error", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Where Pulumi's own program is."""
    return tmp_path / "pulumi-language-python-exec"


def _started(python: Path, *arguments: str | Path, **options: object) -> "subprocess.Popen[str]":
    command = [str(python), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)  # type: ignore[call-overload, no-any-return]


def _output(python: Path, *arguments: str | Path, **options: object) -> tuple[int, str]:
    process = _started(python, *arguments, **options)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


def test_a_program_runs_as_without_the_server(program: Path, tmp_path: Path) -> None:
    program.write_text(PRINTS_ITSELF)
    options = {"cwd": tmp_path, "env": {**os.environ, "ANY": "of this start"}, "stdin": subprocess.DEVNULL}
    before = server_time()
    forked = _output(forked_python(), program, "an argument", **options)
    assert forked[0] == 7
    assert forked == _output(plain_python(), program, "an argument", **options)
    assert server_time() > before


@pytest.mark.parametrize("ignored", [signal.SIGQUIT, signal.SIGINT])
def test_it_runs_in_a_fork_where_only_one_of_them_ignores_a_signal(
    program: Path, ignored: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that starts the tests in the background has them ignore both; Pulumi then ignores only one."""
    program.write_text(PRINTS_ITSELF)
    for before, at_start in ((signal.SIG_IGN, signal.SIG_DFL), (signal.SIG_DFL, signal.SIG_IGN)):
        handler = signal.signal(ignored, before)
        monkeypatch.setattr(pulumi_python, "_socket", cache(pulumi_python._socket.__wrapped__))
        try:
            forked = forked_python()
            signal.signal(ignored, at_start)
            seconds = server_time()
            assert _output(forked, program) == _output(plain_python(), program)
            assert server_time() > seconds
        finally:
            signal.signal(ignored, handler)


@pytest.mark.parametrize("python", [forked_python, plain_python])
def test_the_server_of_dynamic_resources_prints_its_port_until_it_is_ended(python: Callable[[], Path]) -> None:
    process = _started(python(), "-u", "-m", "pulumi.dynamic", "127.0.0.1:1")
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdecimal()
    process.terminate()
    assert process.communicate(timeout=10)[0] == ""
    assert process.returncode == -signal.SIGTERM


HEEDS = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {{{number}}})
print("ready", flush=True)
sys.exit(signal.sigwait({{{number}}}))
"""

STARTS_ANOTHER = """
import os, subprocess
print(os.getpid(), subprocess.Popen(["sleep", "600"]).pid, flush=True)
os.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_program(program: Path, number: signal.Signals) -> None:
    program.write_text(HEEDS.format(number=int(number)))
    process = _started(forked_python(), program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(10) == number


def test_a_signal_that_ends_the_program_ends_its_client(program: Path) -> None:
    program.write_text("import os\nos.kill(os.getpid(), 9)")
    assert _output(forked_python(), program) == (-signal.SIGKILL, "")


def test_the_program_and_what_it_has_started_end_with_the_client(program: Path) -> None:
    program.write_text(STARTS_ANOTHER)
    process = _started(forked_python(), program)
    assert process.stdout is not None
    pids = [int(each) for each in process.stdout.readline().split()]
    assert len(pids) == 2
    process.kill()
    until(lambda: not any(map(psutil.pid_exists, pids)), "their end")
    process.communicate()
