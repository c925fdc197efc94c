"""What stands still for a turn goes on afterwards, whatever happened in between."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from bench import halting
from bench.baselines.containers import Containers, containers
from bench.halting import Handle, OfContainer, OfUpdate, halt, of_containers, of_processes, release
from bench.processes import BenchError, docker
from bench.steps import Training
from tests.waiting import until

DEADLINE = 30.0
FOREVER = "import time\ntime.sleep(1000)\n"
LOCKING = """\
import fcntl, pathlib, sys, time
with open(sys.argv[1], "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    while not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.01)
time.sleep(1000)
"""
HANGING = """\
#!/bin/sh
[ "$1" != unpause ] || exec sleep 1000
exec {docker} "$@"
"""


@dataclass
class Stuck:
    """A handle that can neither be halted nor released; another process stands still before it fails."""

    other: psutil.Process
    asked: list[str] = field(default_factory=list)

    def halt(self) -> None:
        """Fails."""
        self.asked.append("halt")
        until(lambda: all(stopped([self.other])), "the other stands still", DEADLINE)
        raise BenchError("stuck")

    def release(self) -> None:
        """Fails."""
        self.asked.append("release")
        raise BenchError("stuck")


@pytest.fixture
def processes() -> Iterator[list[psutil.Process]]:
    """Three that run."""
    started = [subprocess.Popen(["sleep", "1000"]) for _ in range(3)]
    yield [psutil.Process(process.pid) for process in started]
    for process in started:
        process.kill()
        process.wait()


def stopped(processes: list[psutil.Process]) -> list[bool]:
    return [process.status() == psutil.STATUS_STOPPED for process in processes]


def training(handles: list[Handle]) -> Training:
    return Training(list, [], handles)


def test_processes_go_on_after_an_exception(processes: list[psutil.Process]) -> None:
    def turns() -> None:
        with training([]).stopped(of_processes(processes)):
            until(lambda: all(stopped(processes)), "all stand still")
            raise BenchError("the peer failed")

    with pytest.raises(BenchError, match="the peer failed"):
        turns()
    until(lambda: not any(stopped(processes)), "all go on", DEADLINE)


def test_processes_go_on_when_one_handle_fails(processes: list[psutil.Process]) -> None:
    stuck = Stuck(processes[0])
    first, *others = of_processes(processes)
    with pytest.raises(BenchError, match="stuck"), training([]).stopped([first, stuck, *others]):
        pass
    assert stuck.asked == ["halt", "release"]
    until(lambda: not any(stopped(processes)), "all go on", DEADLINE)


def test_a_process_that_has_ended_is_no_error(processes: list[psutil.Process]) -> None:
    handles = of_processes(processes)
    processes[0].kill()
    processes[0].wait()
    halt(handles)
    release(handles)
    until(lambda: not any(stopped(processes[1:])), "the others go on", DEADLINE)


def test_an_update_is_stopped_only_while_it_does_not_hold_its_lock(tmp_path: Path) -> None:
    lock, may_release = tmp_path / "lock", tmp_path / "may-release"
    with subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(lock), str(may_release)], stdout=subprocess.PIPE
    ) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == b"locked\n"
            update = psutil.Process(started.pid)
            with ThreadPoolExecutor(1) as executor:
                call = executor.submit(OfUpdate([update], lock).halt)
                until(lambda: stopped([update]) == [True], "the first try", DEADLINE)
                may_release.touch()
                call.result()
            assert stopped([update]) == [True]
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            started.kill()


@pytest.fixture
def name(engine: str) -> Iterator[str]:
    """What a test's containers are called."""
    found = f"bench-test-{uuid4().hex[:8]}"
    yield found
    if left := docker("ps", "--all", "--quiet", f"--filter=name={found}").split():
        docker("rm", "--force", *left)


def states(made: Containers) -> list[str]:
    return docker("inspect", "--format={{.State.Status}}", *made.names).split()


def test_containers_go_on_after_an_exception_and_are_removed(python_image: str, name: str, tmp_path: Path) -> None:
    seen: list[list[str]] = []
    (tmp_path / "train.py").write_text(FOREVER)

    def turns() -> None:
        with containers(name, python_image, tmp_path, 1, ["train.py"]) as made:
            try:
                with training([]).stopped(of_containers(made.names)):
                    seen.append(states(made))
                    OfContainer(made.names[0]).release()
                    raise BenchError("our own training failed")
            finally:
                seen.append(states(made))

    with pytest.raises(BenchError, match="our own training failed"):
        turns()
    assert seen == [["paused", "paused"], ["running", "running"]]
    assert docker("ps", "--all", "--quiet", f"--filter=name={name}") == ""


def test_containers_that_cannot_be_unpaused_are_removed(
    python_image: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when `docker unpause` hung for good."""
    (tmp_path / "train.py").write_text(FOREVER)
    command = subprocess.run(["which", "docker"], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(HANGING.format(docker=command))
    (tmp_path / "bin" / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(halting, "_SECONDS", 1.0)
    with (
        pytest.raises(BenchError, match=r"`docker unpause .*` did not end within 1 s"),
        containers(name, python_image, tmp_path, 1, ["train.py"]) as made,
        training([]).stopped(of_containers(made.names)),
    ):
        pass
    assert docker("ps", "--all", "--quiet", f"--filter=name={name}") == ""


def test_a_container_that_fails_is_told_with_its_last_lines(python_image: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nsys.exit('no data')\n")
    with containers(name, python_image, tmp_path, 1, ["train.py"]) as made:
        until(lambda: states(made) == ["exited", "exited"], "the end of both")
        with pytest.raises(BenchError, match=r"(?s)ended with exit code 1; .* printed at last:\nno data"):
            made.check()
