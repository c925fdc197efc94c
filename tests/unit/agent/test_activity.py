"""What counts as activity of a program: the rule, and what real processes show."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import until
from tfdeploy.agent.launch.activity import Activity, Sample, is_active

BEFORE = Sample(100.0, frozenset({7, 8}), 5.0, 1_000, 10)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, False),
        ({"seconds": 5.02}, False),
        ({"seconds": 5.5}, True),
        ({"printed": 11}, True),
        ({"transferred": 65_000}, False),
        ({"transferred": 900_000}, True),
        ({"is_waiting": True}, True),
        ({"pids": frozenset({7})}, True),
        ({"pids": frozenset({7, 8, 9})}, True),
    ],
)
def test_what_counts_as_activity(changed: dict[str, object], expected: bool) -> None:
    assert is_active(BEFORE, BEFORE._replace(at=101.0, **changed)) is expected  # type: ignore[arg-type]


def test_what_counts_depends_on_the_time_between_two_samples() -> None:
    later = BEFORE._replace(at=110.0, seconds=5.2, transferred=500_000)
    assert not is_active(BEFORE, later)
    assert is_active(BEFORE, later._replace(at=101.0))


Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program in its own process group; it is killed at the end."""
    processes: list[subprocess.Popen[bytes]] = []

    def run(code: str) -> "subprocess.Popen[bytes]":
        begun = tmp_path / f"begun-{len(processes)}"
        text = f"{code.replace('BEGUN', f'open({str(begun)!r}, chr(119)).close()')}"
        command = [sys.executable, "-I", "-S", "-c", text]
        processes.append(subprocess.Popen(command, start_new_session=True))
        until(begun.exists, "the program has begun")
        return processes[-1]

    yield run
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Clock:
    """Each call is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def quiet_after(process: "subprocess.Popen[bytes]", calls: int = 4) -> float:
    """For how long a program is seen to be quiet, with samples that seem to be a second apart."""
    activity = Activity(process.pid, Clock())
    return [activity.quiet_seconds(0) for _ in range(calls)][-1]


def test_a_program_that_sleeps_is_quiet(start: Start) -> None:
    assert quiet_after(start("import time; BEGUN; time.sleep(600)")) == 3.0


def test_a_shell_with_a_program_that_sleeps_is_quiet(start: Start) -> None:
    assert quiet_after(start("import subprocess; p = subprocess.Popen(['sleep', '600']); BEGUN; p.wait()")) == 3.0


def test_data_that_is_being_sent_is_activity(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        send = f"import socket; c = socket.create_connection(('127.0.0.1', {port})); BEGUN; c.sendall(bytes(1 << 28))"
        process = start(send)
        connection, _ = server.accept()
        with connection:
            until(lambda: quiet_after(process) == 0.0, "its data waits")


def test_a_child_in_another_group_counts(start: Start) -> None:
    process = start("import os, time; os.fork() or os.setsid() or exec('while 1: pass'); BEGUN; time.sleep(600)")
    activity = Activity(process.pid)
    activity.quiet_seconds(0)
    until(lambda: activity.quiet_seconds(0) == 0.0, "it uses the processor")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in children:
        os.kill(int(pid), signal.SIGKILL)


def test_what_cannot_be_read_is_activity(start: Start) -> None:
    process = start("BEGUN")
    process.wait()
    assert quiet_after(process) == 0.0
