"""A benchmark that ends early, in whatever way, leaves no process: the real engine, with a program that trains nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.waiting import until

ROOT = Path(__file__).parents[2]


def left(folder: Path) -> list[psutil.Process]:
    """The processes that have the folder in their environment, as all have that a benchmark starts."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and any(str(folder) in value for value in process.environ().values()):
                found.append(process)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The temporary folder of a benchmark; what still runs there is killed after the test."""
    yield tmp_path
    for process in left(tmp_path):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def begin(folder: Path, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bench.driver", "steps"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def halted(folder: Path) -> list[psutil.Process]:
    found = []
    for process in left(folder):
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_STOPPED:
                found.append(process)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_signal_while_a_training_is_stopped(folder: Path, number: signal.Signals) -> None:
    with begin(folder) as bench:
        until(lambda: bench.poll() is not None or halted(folder), "a stopped training")
        bench.send_signal(number)
        said, _ = bench.communicate()
    assert bench.returncode == 128 + number, said
    until(lambda: not left(folder), "the end of all processes", seen=lambda: left(folder))
    assert list(folder.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("task", "what"), [("ours", "failed: the run failed: "), ("peer", "ended with exit code 1; its last lines:")]
)
def test_a_training_that_fails(folder: Path, task: str, what: str) -> None:
    with begin(folder, TF_BENCH_FAILS=task) as bench:
        said, _ = bench.communicate()
    assert bench.returncode == 1, said
    assert f"{task} fails on purpose" in said
    assert what in said
    assert "not within" not in said
    until(lambda: not left(folder), "the end of all processes", seen=lambda: left(folder))
