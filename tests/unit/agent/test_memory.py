"""A task is out of memory when its own processes need more than its limit, or when the kernel has killed one of them just now."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfdeploy.agent.launch import memory
from tfdeploy.agent.launch.memory import MemoryWatch, group_members, resident_bytes, use_more_than

MIB = 1024 * 1024

SHARES = """
import os, sys, time

shared = bytearray(os.urandom(1024) * 40 * 1024)
for _ in range(4):
    if os.fork() == 0:
        sum(shared[::4096])
        os.write(1, b"ready\\n")
        time.sleep(600)
os.write(1, b"ready\\n")
time.sleep(600)
"""
"""A program with 40 MiB that four forked loaders share."""


@pytest.fixture
def sharing() -> Iterator[list[int]]:
    process = subprocess.Popen([sys.executable, "-c", SHARES], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    for _ in range(5):
        assert process.stdout.readline() == b"ready\n"
    yield group_members(process.pid)
    os.killpg(process.pid, 9)
    process.communicate()


def test_a_page_that_processes_share_counts_once(sharing: list[int]) -> None:
    assert len(sharing) == 5
    assert sum(map(resident_bytes, sharing)) > 200 * MIB
    assert not use_more_than(150 * MIB, sharing)
    assert use_more_than(30 * MIB, sharing)


def test_the_members_of_a_group_are_found_without_reading_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError(args)

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    assert os.getpid() in group_members(os.getpgid(0))


class Kernel:
    """The kernel's counter, and the time."""

    def __init__(self) -> None:
        self.kills = 3
        self.now = 1_000.0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(memory, "kernel_kills", lambda: made.kills)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(memory, "_WATCH_SECONDS", 600.0)
    return made


@pytest.mark.parametrize(
    ("seconds", "code", "is_out_of_memory"),
    [
        (0.0, -9, True),
        (60.0, -9, False),  # a loader was killed a minute ago; this SIGKILL is somebody else's
        (3.0, 1, True),  # the program fails because its loader was killed
        (60.0, 1, False),
        (0.0, 0, False),
    ],
)
def test_a_kill_by_the_kernel_counts_for_an_end_that_follows_it(
    kernel: Kernel, seconds: float, code: int, is_out_of_memory: bool
) -> None:
    watch = MemoryWatch(os.getpgid(0), 0, lambda: None)
    kernel.kills += 1
    watch.note_kernel_kills()
    kernel.now += seconds
    assert watch.is_out_of_memory(code) is is_out_of_memory


def test_a_signal_without_a_kill_by_the_kernel_is_not_out_of_memory(kernel: Kernel) -> None:
    watch = MemoryWatch(os.getpgid(0), 0, lambda: None)
    assert not watch.is_out_of_memory(-9)
