"""A child always has an owner: a note that names it, and only it."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components.processes import alive
from tests.waiting import until
from tfdeploy.agent.launch import process as module
from tfdeploy.agent.launch.process import Child, boot_id, kill_leftovers
from tfdeploy.agent.model.run_state import Ended
from tfdeploy.agent.model.settings import Limits
from tfdeploy.agent.system.processes import CLUSTER_MARK, MARK
from tfdeploy.agent.system.signals import signal_name
from tfdeploy.backends.zipapp import application

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture(autouse=True)
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent is the running program, as in a launcher."""
    path = tmp_path / "agent.pyz"
    path.write_bytes(application())
    monkeypatch.setattr(sys, "argv", [str(path)])


def child(folder: Path) -> Child:
    return Child(SLEEPS, dict(os.environ), folder, folder / "child.json", Limits())


@pytest.mark.parametrize("full_from", [1, 2])
def test_no_process_is_left_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_from: int
) -> None:
    made: list[int] = []
    writes = 0
    write, popen = os.pwrite, subprocess.Popen

    def pwrite(descriptor: int, data: bytes, position: int) -> int:
        nonlocal writes
        writes += 1
        if writes >= full_from:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data, position)

    def start(*args: object, **more: object) -> "subprocess.Popen[bytes]":
        started: subprocess.Popen[bytes] = popen(*args, **more)  # type: ignore[call-overload]
        made.append(started.pid)
        return started

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(OSError, match="No space left on device"):
        child(tmp_path)
    assert len(made) == full_from - 1
    assert not any(map(alive, made))


def test_the_child_leads_a_group_in_the_session_of_its_launcher(tmp_path: Path) -> None:
    started = child(tmp_path)
    pid = started.process.pid
    try:
        assert (os.getpgid(pid), os.getsid(pid)) == (pid, os.getsid(0))
    finally:
        started.signal(signal.SIGKILL)
        until(lambda: started.exit_code() is not None, "the end of the child")


@pytest.fixture
def members() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Two processes of one group whose leader has ended: one with the mark of a child, one without."""
    leader = subprocess.Popen(["sleep", "600"], process_group=0)
    marked, other = (
        subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}, process_group=leader.pid)
        for mark in ("mark", "another")
    )
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait()
    yield [leader, marked, other]
    for member in (marked, other):
        member.kill()
        member.wait()


def test_a_group_whose_number_is_reused_is_left_alone(tmp_path: Path, members: list["subprocess.Popen[bytes]"]) -> None:
    leader, marked, other = members
    note = tmp_path / "child.json"
    note.write_text(json.dumps({"group": leader.pid, "start": f"1@{boot_id()}", "boot": boot_id(), "mark": "mark"}))
    kill_leftovers(note)
    assert marked.wait() == -signal.SIGKILL
    assert other.poll() is None
    assert not note.exists()


def started_by(folder: Path, program: str, nice: int = 0, **more: str) -> tuple[Child, list[int]]:
    """A child that has run this shell program, at its end, and the numbers that it has printed."""
    made = Child(["sh", "-c", program], {**os.environ, **more}, folder, folder / "child.json", Limits(nice=nice))
    stdout = made.process.stdout
    assert stdout is not None
    until(made.end, "the end of the child")
    numbers = [int(stdout.readline()) for _ in range(program.count("echo"))]
    made.finish()
    for pipe in filter(None, (stdout, made.process.stderr)):
        pipe.close()
    return made, numbers


@pytest.mark.parametrize(("asked", "added"), [(0, 0), (5, 5), (19, 19)])
def test_a_program_has_the_niceness_of_its_task(tmp_path: Path, asked: int, added: int) -> None:
    _, (nice,) = started_by(tmp_path, "echo $(nice)", asked)
    assert nice == min(os.nice(0) + added, 19)


@pytest.mark.parametrize("start", ["sleep 611 &", "setsid sleep 611 &", "(setsid sh -c 'sleep 611 & wait' &) ; true &"])
def test_what_a_program_leaves_behind_ends_with_it_whatever_its_session(tmp_path: Path, start: str) -> None:
    made, _ = started_by(tmp_path, start)
    assert any("sleep 611" in command for command in made.left)
    assert module.attempt_processes(0, made._mark) == []


def test_what_ends_by_itself_after_the_program_is_not_killed(tmp_path: Path) -> None:
    made, _ = started_by(tmp_path, "(sleep 0.2; touch ended) &")
    assert (made.left, (tmp_path / "ended").exists()) == ([], True)


@pytest.mark.parametrize(
    ("variable", "value", "is_left"),
    [(CLUSTER_MARK, "", False), (CLUSTER_MARK, "/another", True), (MARK, "another", True)],
)
def test_another_cluster_and_task_are_left_alone(tmp_path: Path, variable: str, value: str, is_left: bool) -> None:
    program = f"{variable}={value} setsid sleep 600 >/dev/null 2>&1 & echo $! ; sleep 0.3; exit 3"
    made, (pid,) = started_by(tmp_path, program)
    try:
        assert (alive(pid), bool(made.left)) == (is_left, not is_left)
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_launcher_that_was_killed_leaves_nothing_in_another_session(tmp_path: Path) -> None:
    note = tmp_path / "child.json"
    helper = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: "mark"}, start_new_session=True)
    unmarked = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note.write_text(json.dumps({"group": 1 << 22, "start": "", "boot": boot_id(), "mark": "mark"}))
    kill_leftovers(note)
    assert (helper.wait(), unmarked.poll()) == (-signal.SIGKILL, None)
    for mark, boot in (("", boot_id()), ("mark", "another")):
        note.write_text(json.dumps({"group": 0, "start": "", "boot": boot, "mark": mark}))
        kill_leftovers(note)
    assert unmarked.poll() is None
    unmarked.kill()
    unmarked.wait()


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (35, "SIGRTMIN+1"), (64, "SIGRTMAX")])
def test_each_signal_that_ends_a_program_has_a_name(tmp_path: Path, number: int, name: str) -> None:
    made = child(tmp_path)
    until(lambda: b"time.sleep" in Path(f"/proc/{made.process.pid}/cmdline").read_bytes(), "the program runs")
    made.signal(number)
    until(lambda: made.end() is not None, "it has ended")
    assert made.end() == Ended(128 + number, name)


def test_every_signal_has_a_name() -> None:
    names = [signal_name(number) for number in range(1, 65)]
    assert all(name.startswith("SIG") for name in names)
    assert len({*names}) == 64
