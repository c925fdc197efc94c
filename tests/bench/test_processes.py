"""Commands of the benchmarks: each has a deadline, and what fails says so at once, with its last lines."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench.processes import BenchError, Process, run, until
from tests.waiting import until as wait

FAILS = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
PATIENT = 1000.0
DEADLINE = 30.0


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Process]]:
    """Processes that a test has started."""
    found: list[Process] = []
    yield found
    for process in found:
        process.kill()


def python(text: str, folder: Path, started: list[Process]) -> Process:
    started.append(Process([sys.executable, "-c", text], folder / f"output-{len(started)}", folder, {}))
    return started[-1]


def test_a_command_that_fails_is_told_with_its_last_lines() -> None:
    many = "print(*range(100), sep='\\n'); " + FAILS
    with pytest.raises(BenchError, match=r"(?s)ended with exit code 3; its last lines:\n.*99\none\ntwo$") as failed:
        run(sys.executable, "-c", many)
    assert "\n42\n" not in str(failed.value)


def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"did not end within 0\.5 s"):
        run("sh", "-c", f"sleep {PATIENT} & echo $! > child; echo $$ > shell; wait", seconds=0.5, folder=tmp_path)
    for name in ("child", "shell"):
        pid = int((tmp_path / name).read_text())
        wait(lambda pid=pid: not psutil.pid_exists(pid), f"the end of the {name}", DEADLINE)  # type: ignore[misc]


def test_what_is_waited_for_fails_at_once_when_the_process_has_failed(tmp_path: Path, started: list[Process]) -> None:
    with pytest.raises(BenchError, match=r"(?s)exit code 3; its last lines:\n(one\ntwo|two\none)"):
        until(lambda: False, "a step", python(FAILS, tmp_path, started), seconds=DEADLINE)


def test_what_is_not_there_in_time_is_told_with_the_last_lines(tmp_path: Path, started: list[Process]) -> None:
    process = python("import time; print('still loading', flush=True); time.sleep(1000)", tmp_path, started)
    wait(process.output, "its line")
    with pytest.raises(BenchError, match=r"(?s)a step: not within 0\.2 s\n.*printed at last:\nstill loading"):
        until(lambda: False, "a step", process, seconds=0.2)


def test_a_process_that_does_not_end_is_an_error(tmp_path: Path, started: list[Process]) -> None:
    process = python("import time; print('at work', flush=True); time.sleep(1000)", tmp_path, started)
    wait(process.output, "its line")
    with pytest.raises(BenchError, match=r"(?s)did not end within 0\.1 s\nat work"):
        process.finish(0.1)


def test_a_process_that_ignores_an_interrupt_is_killed(tmp_path: Path, started: list[Process]) -> None:
    text = "import signal, time; signal.signal(2, signal.SIG_IGN); print('deaf', flush=True); time.sleep(1000)"
    process = python(text, tmp_path, started)
    wait(process.output, "its line")
    assert not process.interrupt(0.2)
    assert process.over


HOLDS = """\
import time
from bench import ending
ending.watch()
try:
    print("begun", flush=True)
    time.sleep(1000)
finally:
    with ending.undisturbed():
        print("removing", flush=True)
        input()
        print("removed", flush=True)
    print("outside", flush=True)
"""

HOLDS_FIRST = """\
from bench import ending
ending.watch()
with ending.undisturbed():
    print("begun", flush=True)
    input()
    print("removed", flush=True)
print("never", flush=True)
"""


def test_a_second_signal_does_not_disturb_the_removal() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(2)
        assert process.stdout.readline() == "removing\n"
        process.send_signal(2)
        process.send_signal(15)
        said, _ = process.communicate("\n")
        assert said.splitlines() == ["removed", "outside"]
        assert process.returncode == 130


def test_a_first_signal_waits_for_the_end_of_the_removal() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS_FIRST], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(15)
        said, _ = process.communicate("\n")
        assert said.splitlines() == ["removed"]
        assert process.returncode == 143
