"""A signal that arrives at the very moment in which a benchmark starts a process: the process is killed all the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bench import ending, processes
from bench.baselines.by_hand import ByHand
from bench.processes import BenchError
from tests.waiting import until

_SLEEP = "import time; time.sleep(600)"


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The benchmark's handlers and their state, for one test."""
    before = {number: signal.getsignal(number) for number in ending._SIGNALS}
    ending.watch()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    ending._State.received, ending._State.raised, ending._State.held = 0, False, 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are started; each start is interrupted by a signal."""
    pids: list[int] = []
    popen = subprocess.Popen

    def interrupted(*arguments: object, **more: object) -> "subprocess.Popen[bytes]":
        process: subprocess.Popen[bytes] = popen(*arguments, **more)  # type: ignore[call-overload]
        pids.append(process.pid)
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    return pids


def _by_hand(folder: Path) -> None:
    (folder / "program.py").write_text(_SLEEP)
    with ByHand(folder, folder / "logs", 1, ["program.py"]):
        raise AssertionError("the signal has no effect")


def _run(_: Path) -> None:
    processes.run(sys.executable, "-c", _SLEEP)


@pytest.mark.parametrize("start", [_by_hand, _run])
def test_a_process_that_is_just_being_started_is_killed(
    tmp_path: Path, started: list[int], start: Callable[[Path], None]
) -> None:
    with pytest.raises(SystemExit):
        start(tmp_path)
    assert len(started) == 1
    assert not psutil.pid_exists(started[0])


def _remove(removed: list[str]) -> None:
    with ending.undisturbed():
        until(lambda: ending._State.late, "the deadline")
        removed.append("all")


def _end_by_a_signal() -> None:
    with ending.deadline(0.01, BenchError("late")):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            _remove([])


def test_a_deadline_waits_for_what_must_not_be_interrupted() -> None:
    removed: list[str] = []
    with pytest.raises(BenchError, match="late"), ending.deadline(0.01, BenchError("late")):
        _remove(removed)
    assert removed == ["all"]


def test_a_deadline_does_not_hide_the_signal_that_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit):
        _end_by_a_signal()
