"""Clocks that are set, launchers that are lost again and again, two launchers of one task, late and removed tasks."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.simulation import World, running
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.model import events, sync
from tfdeploy.agent.model.run_state import LauncherReport

HOUR = 3_600.0


def test_a_replaced_machine_that_comes_late_never_ends_a_run_that_has_trained() -> None:
    job = running(ps=1, workers=2, start_timeout="5m")
    job.lose("worker-1")
    job.lose("worker-0")
    job.come("worker-0", port=29_999)
    job.wait(10 * 60)
    assert job.verdict() == "none"
    job.come("worker-1", port=29_998)
    assert {name for name, task in job.job.tasks.items() if task.state == "running"} == set(job.job.tasks)


@pytest.mark.parametrize("clock", [HOUR, -HOUR, 0.0])
def test_a_clock_that_is_set_and_a_controller_that_was_away_change_no_deadline(clock: float) -> None:
    job = World(workers=2, start_timeout="60s")
    job.come("worker-0")
    job.now += clock
    if clock:  # which the controller notices at once
        reconcile.shift_clock(job.job, clock)
    else:
        job.return_after(600)
    job.wait(59)
    assert job.verdict() == "none"
    job.wait(2)
    assert job.verdict() == "failed: worker-1 did not start within 60 s"


def test_a_clock_that_was_set_back_while_no_controller_ran_delays_no_restart() -> None:
    job = running(workers=1, restart={"maximum": 3, "backoff": "5s", "on": ["any"]})
    job.exit("worker-0", 1)
    job.exit("worker-0", 1)
    job.now -= HOUR
    reconcile.recover_clock(job.job, job.now, job.now)
    assert job.running() == ""
    job.wait(6)
    assert job.running() == "worker-0/3"


def test_launchers_that_are_lost_in_a_row_are_restarted_later_and_later_and_end_the_run() -> None:
    job = running(workers=1)
    waits = []
    for _ in range(10):
        job.wait(299)
        job.lose("worker-0")
        job.come("worker-0")
        begin = job.now
        while not job.running() and job.job.result is None:
            job.wait(1)
        waits.append(job.now - begin)
    assert waits[:5] == [0, 1, 2, 4, 8]
    assert job.verdict() == "failed: the launcher of worker-0 was lost 10 times in a row"


def test_launchers_that_are_lost_now_and_then_never_end_the_run() -> None:
    job = running(workers=1)
    for _ in range(30):
        job.lose("worker-0")
        job.come("worker-0")
        assert job.running()
        job.wait(300)
    assert job.verdict() == "none"


def test_of_two_launchers_of_a_task_the_earlier_one_is_told_to_exit() -> None:
    job = running(workers=1)
    old = job.launchers["worker-0"]
    job.come("worker-0")
    attempt = job.job.tasks["worker-0"].attempt
    for _ in range(5):
        assert job.take(old.report()).action == sync.END
        job.settle()
    assert job.running() == f"worker-0/{attempt}"
    assert job.happened().count((events.LAUNCHER_LOST, "worker-0")) == 1


def test_a_launcher_whose_task_an_update_left_out_is_fenced_when_a_later_run_has_the_task_again() -> None:
    job = running(workers=2)
    job.come("worker-1")
    old = job.launchers.pop("worker-1")
    full = job.job.spec
    job.give(workers=1)
    before = job.job
    job.job = type(before)(full, job.now)
    reconcile.inherit_fences(job.job, before)
    job.come("worker-1")
    assert job.take(old.report()).action == sync.END
    assert job.take(job.launchers["worker-1"].report()).action != sync.END


def test_a_parameter_server_that_ends_before_its_workers_fails_the_run() -> None:
    job = running(ps=2, workers=2)
    job.exit("ps-1")
    job.wait(60)
    assert job.verdict() == "none"
    job.wait(1)
    assert job.verdict() == "failed: ps-1 ended before its workers"


def test_a_parameter_server_that_ends_just_before_its_workers_is_no_failure() -> None:
    job = running(ps=1, workers=1)
    job.exit("ps-0")
    job.wait(60)
    job.exit("worker-0")
    job.wait(HOUR)
    assert job.verdict() == "succeeded: worker-0 succeeded"


@pytest.mark.parametrize("make", [running, World])
def test_when_all_tasks_are_removed_nothing_happens_any_more(make: Callable[..., World]) -> None:
    job = make(ps=1, workers=2, start_timeout="60s")
    for hostname in list(job.job.tasks):
        job.note(reconcile.remove_tasks(job.job, [hostname]))
        job.launchers.pop(hostname, None)
    job.events.clear()
    for _ in range(100):
        job.wait(1)
    assert (job.happened(), job.verdict()) == ([], "none")


@pytest.mark.parametrize(
    ("args", "removed", "others"),
    [
        ({"ps": 1, "workers": 2}, "worker-0", ["worker-1"]),
        ({"workers": 2, "success": "all-workers"}, "worker-1", ["worker-0"]),
        ({"workers": 1, "gpu_workers": 1, "jobs": {"gpu_worker": {"gpus": 0}}}, "worker-0", ["gpu-worker-0"]),
        ({"chief": True, "workers": 1, "evaluator": True}, "chief-0", ["worker-0"]),
        ({"ps": 1, "workers": 1}, "worker-0", []),
    ],
)
def test_a_run_whose_deciding_task_is_removed_fails_when_nothing_else_trains(
    args: dict[str, Any], removed: str, others: list[str]
) -> None:
    job = running(**args)
    job.wait(300)
    job.note(reconcile.remove_tasks(job.job, [removed]))
    job.settle()
    for hostname in others:
        job.wait(300)
        assert job.verdict() == "none", "others train"
        job.exit(hostname)
    job.wait(119)
    assert job.verdict() == "none", "it may be replaced"
    job.wait(1)
    assert job.verdict() == f"failed: the run cannot succeed without {removed}, which was removed"


def test_a_deciding_task_that_is_replaced_decides() -> None:
    job = running(ps=1, workers=1)
    old = job.launchers["worker-0"].report()
    job.note(reconcile.remove_tasks(job.job, ["worker-0"]))
    for _ in range(10):
        job.now += 60
        job.take(old)  # its program saves a checkpoint
    job.lose("worker-0")
    job.wait(100)
    job.return_after(1000)
    job.wait(100)
    assert job.verdict() == "none"
    job.come("worker-0")
    job.wait(300)
    assert "worker-0/2" in job.running()
    job.exit("worker-0")
    assert job.verdict() == "succeeded: worker-0 succeeded"


def test_output_that_a_launcher_dropped_is_one_event_when_it_has_ended() -> None:
    job = running(workers=1)
    launcher = job.launchers["worker-0"]
    for dropped in (100, 300, 700, 700, 700):
        job.take(_with_dropped(launcher.report(), dropped))
    assert [event.count for event in job.events if event.kind == events.OUTPUT_DROPPED] == [700]
    for dropped in (900, 900):
        job.take(_with_dropped(launcher.report(), dropped))
    assert [event.count for event in job.events if event.kind == events.OUTPUT_DROPPED] == [700, 200]


def _with_dropped(report: LauncherReport, dropped: int) -> LauncherReport:
    return LauncherReport.from_dict({**report.to_dict(), "dropped_bytes": dropped})


def test_what_a_launcher_cannot_do_is_an_event_once() -> None:
    job = running(workers=1)
    report = job.launchers["worker-0"].report()
    for problem in ("", "no space", "no space", "", "no code"):
        job.take(LauncherReport.from_dict({**report.to_dict(), "problem": problem}))
    assert [event.reason for event in job.events if event.kind == events.LAUNCHER_PROBLEM] == ["no space", "no code"]
