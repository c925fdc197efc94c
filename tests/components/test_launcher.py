"""A launcher whose disk, controller or predecessor fails: its program is neither lost, nor run twice, nor run beside another."""

import os
import resource
import signal
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from tests.components.launching import launching
from tests.components.processes import alive
from tests.unit.simulation import BEGIN, Launcher
from tests.waiting import until
from tfdeploy.agent.launch import launcher as module
from tfdeploy.agent.launch.last_order import AWAY_SECONDS
from tfdeploy.agent.model import sync
from tfdeploy.agent.model.run_spec import RestartPolicy
from tfdeploy.agent.model.settings import TaskSettings
from tfdeploy.agent.model.sync import END, NOTHING, Order
from tfdeploy.agent.model.task_command import TaskAddress

WAITS_FOR = """
import os, pathlib, time

here = pathlib.Path({folder!r})
with (here / "starts").open("a") as starts:
    starts.write(f"{{os.getpid()}}\\n")
while not (here / "gate").exists():
    time.sleep(0.02)
print("the end")
"""


def waits(folder: Path) -> str:
    """A program that ends well when the test makes the file `gate`."""
    return WAITS_FOR.format(folder=str(folder))


def starts(folder: Path) -> list[int]:
    """The process ids of the program's starts."""
    path = folder / "starts"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def until_started(folder: Path, times: int) -> int:
    """Wait until the program has been started so often; the newest process id."""
    return until(lambda: starts(folder)[times - 1 :], f"start {times}")[0]


def test_an_end_that_was_not_reported_is_reported_by_the_next_launcher(tmp_path: Path) -> None:
    with launching(tmp_path, waits(tmp_path)) as task:
        first = task.start()
        task.until_report(lambda report: report.phase == sync.RUNNING, "a running program")
        task.controller.is_silent = True
        (tmp_path / "gate").touch()
        until((task.folder / "exit.json").exists, "the end is stored")
        first.kill()
        first.wait()
        task.controller.is_silent = False
        task.controller.reports.clear()
        assert task.start().wait() == 0
        report = task.controller.reports[0]
        assert report.exit is not None
        assert (report.run_id, report.attempt, report.phase, report.exit.code) == ("run", 1, sync.EXITED, 0)
        assert task.controller.logs_at_exit == b"the end\n"
        assert report.exit.age > 0
        assert len(starts(tmp_path)) == 1
        assert not (task.folder / "exit.json").exists()


def test_a_launcher_outlives_another_program_at_its_controllers_address(tmp_path: Path) -> None:
    """And when it wakes up, it does not interrupt its program."""
    with launching(tmp_path, waits(tmp_path)) as task:
        launcher = task.start()
        task.until_report(lambda report: report.phase == sync.RUNNING, "a running program")
        assert os.sched_getscheduler(launcher.pid) == os.SCHED_BATCH
        assert os.sched_getscheduler(until_started(tmp_path, 1)) == os.SCHED_OTHER
        task.controller.is_another_program = True
        before = task.controller.calls
        until(lambda: task.controller.calls > before + 3, "three further calls")
        task.controller.is_another_program = False
        (tmp_path / "gate").touch()
        assert launcher.wait() == 0
        assert len(starts(tmp_path)) == 1


def test_a_program_that_was_started_again_without_the_controller_is_reported_by_the_next_launcher(
    tmp_path: Path,
) -> None:
    with launching(tmp_path, waits(tmp_path)) as task:
        policy = RestartPolicy(3, 0.1, ["signal"])
        task.controller.decide = lambda report: replace(task.controller.run_attempt(report, 1), restart=policy)
        launcher = task.start()
        task.until_report(lambda report: report.phase == sync.RUNNING, "a running program")
        task.controller.is_silent = True
        os.kill(until_started(tmp_path, 1), signal.SIGKILL)
        second = until_started(tmp_path, 2)
        launcher.kill()
        launcher.wait()
        until(lambda: not alive(second), "the program has ended with its launcher")
        task.controller.reports.clear()
        task.controller.is_silent = False
        task.controller.decide = lambda report: Order(END)
        assert task.start().wait() == 0
        report = task.controller.reports[0]
        assert (report.run_id, report.attempt, report.phase, report.exit) == ("run", 2, sync.IDLE, None)
        assert [(ended.attempt, ended.signal) for ended in report.restarted] == [(1, "SIGKILL")]
        assert report.restarted[0].age > AWAY_SECONDS - 1
        assert not (task.folder / "exit.json").exists()


PRINTS = """
import pathlib, sys, time

here = pathlib.Path({folder!r})
for _ in range({lines}):
    sys.stdout.write("x" * 99 + chr(10))
sys.stdout.flush()
(here / "printed").touch()
while not (here / "gate").exists():
    time.sleep(0.02)
print("the end")
"""

LINES = 80_000


def test_a_full_disk_neither_blocks_nor_ends_the_program_and_what_is_dropped_is_counted(tmp_path: Path) -> None:
    with launching(tmp_path, PRINTS.format(folder=str(tmp_path), lines=LINES)) as task:
        launcher = task.start(file_bytes=1024 * 1024)
        until((tmp_path / "printed").exists, "the program has printed all")
        resource.prlimit(launcher.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        report = task.until_report(lambda report: report.dropped_bytes, "the count")
        assert report.phase == sync.RUNNING
        (tmp_path / "gate").touch()
        assert launcher.wait() == 0
        report = task.controller.reports[-1]
        stored = task.controller.logs["stdout"]
        assert stored.endswith((b"x\nthe end\n", b"xthe end\n"))
        assert len(stored) + report.dropped_bytes == LINES * 100 + len("the end\n")
        assert report.exit is not None
        assert report.exit.code == 0


def archive(files: dict[str, str]) -> bytes:
    """A code archive."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (None, "cannot prepare the run: GET /code/code: 404 there is no such archive"),
        (b"not an archive", "cannot prepare the run: File is not a zip file"),
    ],
)
def test_a_code_archive_that_cannot_be_used_is_reported_and_fetched_again_ever_later(
    tmp_path: Path, code: bytes | None, problem: str
) -> None:
    with launching(tmp_path, "import module", code) as task:
        launcher = task.start()
        report = task.until_report(lambda report: report.problem, "a problem")
        assert (report.problem, report.ready, report.phase) == (problem, False, sync.IDLE)
        seen = len(task.controller.reports)
        until(lambda: len(task.controller.reports) > seen + 40, "forty further reports")
        assert task.controller.code_calls <= 4
        task.controller.code = archive({"module.py": "print('imported')"})
        assert launcher.wait() == 0
        assert task.controller.logs["stdout"] == b"imported\n"
        assert task.controller.reports[-1].problem == ""
        assert sorted(path.name for path in task.folder.iterdir()) == ["lock", "spool", "task.json", "work"]


def test_an_end_by_itself_is_reported_again_after_an_interruption(tmp_path: Path) -> None:
    with launching(tmp_path, "print('done')") as task:
        task.controller.decide = lambda report: (
            Order(NOTHING) if report.exit else task.controller.run_attempt(report, 1)
        )
        first = task.start()
        task.until_report(lambda report: report.exit, "the end")
        os.kill(first.pid, signal.SIGTERM)
        assert first.wait() == 143
        task.controller.decide = task.controller.run_once
        task.controller.reports.clear()
        assert task.start().wait() == 0
        assert task.controller.reports[0].exit is not None
        assert task.controller.logs["stdout"] == b"done\n"


def test_the_reports_of_the_simulation_have_what_those_of_a_launcher_have(tmp_path: Path) -> None:
    """Else the unit tests of the controller try what no launcher does."""
    with launching(tmp_path, waits(tmp_path)) as task:
        launcher = task.start()
        running = task.until_report(lambda report: report.phase == sync.RUNNING, "a running program")
        (tmp_path / "gate").touch()
        ended = task.until_report(lambda report: report.exit, "the end of the program")
        assert launcher.wait() == 0
    fake = Launcher("worker-0")
    fake.obey(Order(sync.PREPARE, run_id="run", attempt=1, generation=1), BEGIN)
    book = [TaskAddress("worker-0", "worker", 0, "127.0.0.1:1")]
    fake.obey(Order(sync.RUN, run_id="run", attempt=1, generation=1, address_book=book), BEGIN)
    machine = {"machine", "can_upload"}
    assert set(fake.report(BEGIN + 1).to_dict()) | machine == set(running.to_dict()) | machine
    fake.end_child(0, BEGIN + 1)
    assert set(fake.report(BEGIN + 2).to_dict()) | machine == set(ended.to_dict()) | machine


def test_each_end_of_a_program_waits_for_its_own_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, has_arrived = [100.0], [False]
    (tmp_path / "token").write_text("token")
    settings = TaskSettings("worker-0", "worker", 0, "127.0.0.1:1", str(tmp_path / "token"), str(tmp_path), "")
    launcher = module.Launcher(settings)
    monkeypatch.setattr(module, "boot_seconds", lambda: now[0])
    monkeypatch.setattr(launcher, "_ship_leftovers", lambda: has_arrived[0])
    shipped = []
    for seconds, arrives in ((0, False), (9, False), (0.5, True), (1, False), (9, False), (1, False)):
        now[0] += seconds
        has_arrived[0] = arrives
        shipped.append(launcher._has_shipped())
    assert shipped == [False, False, True, False, False, True]
