"""The life of a job as the controller decides it: reports in, orders out."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.simulation import Launcher, World, running
from tfdeploy.agent.control import reconcile
from tfdeploy.agent.model import events, sync

ANY = {"maximum": 3, "backoff": "1s", "on": ["any"]}


def test_nobody_starts_before_all_have_come() -> None:
    job = World(ps=1, workers=2)
    job.come("ps-0", "worker-0")
    assert job.states() == "ps-0 waiting (worker-1), worker-0 waiting (worker-1), worker-1 scheduled"
    assert job.running() == ""
    job.come("worker-1")
    assert job.states() == "ps-0 running, worker-0 running, worker-1 running"
    assert job.happened() == [
        (events.LAUNCHER_REGISTERED, "ps-0"),
        (events.LAUNCHER_REGISTERED, "worker-0"),
        (events.LAUNCHER_REGISTERED, "worker-1"),
        (events.BARRIER_PASSED, ""),
        (events.TASK_STARTED, "worker-1"),
        (events.TASK_STARTED, "ps-0"),
        (events.TASK_STARTED, "worker-0"),
    ]
    assert job.events[3].tasks == ["ps-0", "worker-0", "worker-1"]
    assert {event.attempt for event in job.events[4:]} == {1}


def test_who_does_not_come_in_time_fails_the_job_by_name() -> None:
    job = World(ps=1, workers=2, start_timeout="60s")
    job.come("worker-0")
    job.wait(60)
    assert job.verdict() == "none"
    job.wait(1)
    assert job.verdict() == "failed: ps-0, worker-1 did not start within 60 s"
    assert job.states() == "ps-0 stopped (run failed), worker-0 stopped (run failed), worker-1 stopped (run failed)"


@pytest.mark.parametrize(
    ("args", "ends", "result"),
    [
        ({"chief": 1, "workers": 1}, ["worker-0"], "none"),
        ({"chief": 1, "workers": 1}, ["chief-0"], "succeeded: chief-0 succeeded"),
        ({"chief": 1, "workers": 1, "success": "worker-0"}, ["worker-0"], "succeeded: worker-0 succeeded"),
        ({"workers": 2}, ["worker-1"], "none"),
        ({"workers": 2}, ["worker-0"], "succeeded: worker-0 succeeded"),
        ({"workers": 1, "gpu_workers": 1}, ["gpu-worker-0"], "none"),
        ({"gpu_workers": 2}, ["gpu-worker-0"], "succeeded: gpu-worker-0 succeeded"),
        ({"workers": 2, "success": "all-workers"}, ["worker-0"], "none"),
        ({"workers": 2, "success": "all-workers"}, ["worker-0", "worker-1"], "succeeded: worker-0, worker-1 succeeded"),
        (
            {"workers": 1, "gpu_workers": 1, "success": "all-workers"},
            ["worker-0", "gpu-worker-0"],
            "succeeded: worker-0, gpu-worker-0 succeeded",
        ),
        ({"chief": 1, "workers": 1, "success": "all-workers"}, ["worker-0"], "none"),
        ({"standalone_servers": True, "ps": 1, "workers": 1}, ["worker-0"], "none"),
        (
            {"standalone_servers": True, "ps": 1, "workers": 1, "tensorboard": True},
            ["worker-0", "ps-0"],
            "succeeded: ps-0, worker-0 succeeded",
        ),
    ],
)
def test_the_success_rule_decides(args: dict[str, Any], ends: list[str], result: str) -> None:
    job = running(**args)
    for hostname in ends:
        job.exit(hostname)
    assert job.verdict() == result


def test_after_the_success_the_others_are_stopped_and_all_launchers_end() -> None:
    job = running(ps=1, workers=1)
    job.exit("worker-0")
    assert job.states() == "ps-0 stopped (run finished), worker-0 succeeded"
    assert job.launchers == {}
    assert job.happened() == [
        (events.TASK_SUCCEEDED, "worker-0"),
        (events.RUN_ENDED, ""),
        (events.TASK_STOPPED, "ps-0"),
    ]


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        ({"code": 3}, "failed", "worker-0 failed (exit 3)"),
        ({"code": 137, "signal": "SIGKILL"}, "killed", "worker-0 was killed (SIGKILL)"),
        ({"code": 137, "signal": "SIGKILL", "oom": True}, "out of memory", "worker-0 ran out of memory"),
    ],
)
def test_a_task_that_ends_badly_for_good_fails_the_job(end: dict[str, Any], state: str, reason: str) -> None:
    job = running(ps=1, workers=2, restart={"maximum": 0})
    job.exit("worker-0", **end)
    assert job.verdict() == f"failed: {reason}"
    assert job.states() == f"ps-0 stopped (run failed), worker-0 {state}, worker-1 stopped (run failed)"


@pytest.mark.parametrize(
    ("ends", "seconds", "verdict"),
    [
        ({"worker-1": 5, "worker-0": 0}, 1, "failed: worker-1 failed (exit 5)"),
        ({"worker-0": 0, "worker-1": 5}, 0, "succeeded: worker-0 succeeded"),
    ],
)
def test_of_a_success_and_a_failure_that_are_seen_at_once_the_first_that_was_reported_counts(
    ends: dict[str, int], seconds: int, verdict: str
) -> None:
    job = running(workers=2, restart={"maximum": 0})
    for hostname, code in ends.items():
        job.launchers[hostname].end_child(code, job.now)
        job.note(reconcile.apply_report(job.job, job.launchers[hostname].report(), job.now))
        job.now += seconds
    job.wait(1)
    assert job.verdict() == verdict


@pytest.mark.parametrize("args", [{"workers": 2}, {"chief": 1, "workers": 1, "success": "worker-0"}])
@pytest.mark.parametrize(("code", "end"), [(0, "succeeded"), (5, "failed")])
def test_the_other_workers_and_the_ps_have_time_after_the_success(args: dict[str, Any], code: int, end: str) -> None:
    """However they end, it changes no result, and none is restarted."""
    job = running(ps=1, worker_timeout="20s", restart=ANY, **args)
    other = "chief-0" if "chief" in args else "worker-1"
    job.exit("worker-0")
    job.wait(19.5)
    assert job.verdict() == "succeeded: worker-0 succeeded"
    assert job.running() == ", ".join(sorted([f"{other}/1", "ps-0/1"]))
    job.exit(other, code)
    assert f"{other} {end}" in job.states()
    assert job.verdict() == "succeeded: worker-0 succeeded"
    assert "ps-0 stopped (run finished)" in job.states()
    assert job.launchers == {}


def test_a_worker_whose_start_is_not_reported_when_worker_0_ends_may_run_too() -> None:
    job = World(ps=1, workers=2)
    job.come("ps-0", "worker-0")
    job.launchers["worker-1"] = Launcher("worker-1", now=job.now)
    job.sync("worker-1")  # prepares
    job.sync("worker-1")  # starts, and has not reported it
    for hostname in ("worker-0", "ps-0"):
        job.sync(hostname)
    job.launchers["worker-0"].end_child(0, job.now)
    job.sync("worker-0")
    assert job.verdict() == "succeeded: worker-0 succeeded"
    assert "worker-1 starting" in job.states()
    report = job.launchers["worker-1"].report()
    job.take(replace(report, phase=sync.IDLE, attempt=0))  # as it was before the start
    assert not job.job.tasks["worker-1"].at_rest, "it has the order to start"
    job.settle()
    assert job.running() == "ps-0/1, worker-1/1"


@pytest.mark.parametrize("state", ["restarting", "interrupted", "lost"])
def test_a_worker_that_does_not_run_at_the_success_is_not_started_again(state: str) -> None:
    job = running(workers=2, restart={**ANY, "backoff": "10s"})
    if state == "restarting":
        job.exit("worker-1", 3)
        job.exit("worker-1", 3)
        assert "worker-1 restarting" in job.states()
    elif state == "interrupted":
        job.launchers["worker-1"].end_child(143, job.now, "SIGTERM", cause="interrupted")
        job.sync("worker-1")
    job.launchers["worker-0"].end_child(0, job.now)
    job.sync("worker-0")
    if state == "lost":
        job.lose("worker-1")
        job.come("worker-1")
    job.wait(11)
    assert job.states() == "worker-0 succeeded, worker-1 stopped (run finished)"


@pytest.mark.parametrize(("auxiliary", "time_limit"), [(True, 0.0), (False, 0.0), (False, 60.0)])
def test_a_stop_after_a_success_ends_the_other_workers_for_good(auxiliary: bool, time_limit: float) -> None:
    job = running(ps=1, workers=2, worker_timeout="1h")
    job.exit("worker-0")
    reconcile.stop_run(job.job, job.now, auxiliary, time_limit)
    job.restart_controller()
    job.give(ps=1, workers=2, worker_timeout="1h")
    assert job.states() == "ps-0 stopped (run finished), worker-0 succeeded, worker-1 stopped (run finished)"
    assert job.verdict() == "succeeded: worker-0 succeeded"


def test_servers_have_no_time_after_the_success_of_their_client() -> None:
    job = running(standalone_servers=True, chief=1, ps=1, workers=1, command=["python"])
    job.exit("chief-0")
    assert job.verdict() == "succeeded: chief-0 succeeded"
    assert job.states() == "chief-0 succeeded, ps-0 stopped (run finished), worker-0 stopped (run finished)"


def test_a_clock_that_was_set_back_gives_the_workers_no_more_time() -> None:
    job = running(ps=1, workers=2, worker_timeout="20s")
    job.exit("worker-0")
    job.now -= 1_000
    reconcile.recover_clock(job.job, job.now, job.now)
    job.wait(20)
    assert job.done()


@pytest.mark.parametrize(
    ("backoff", "expected"), [("2s", [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]), ("10m", [600, 600])]
)
def test_pauses_are_0_then_double_up_to_five_minutes_or_to_what_was_asked_for(
    backoff: str, expected: list[int]
) -> None:
    job = running(workers=1, restart={**ANY, "maximum": 12, "backoff": backoff})
    job.exit("worker-0", 3)
    assert job.running() == "worker-0/2", "the first restart is immediate"
    pauses = []
    for _ in expected:
        job.exit("worker-0", 3)
        pauses.append(job.job.tasks["worker-0"].not_before - job.now)
        job.wait(pauses[-1] - 0.5)
        assert job.running() == ""
        job.wait(0.5)
        assert job.running()
    assert pauses == expected


KILL = {"code": 137, "signal": "SIGKILL"}
OOM = {**KILL, "oom": True}


@pytest.mark.parametrize(
    ("on", "end", "again"),
    [
        (["any"], {"code": 3}, True),
        (["signal"], KILL, True),
        (["signal"], OOM, False),
        (["signal"], {"code": 137}, False),
        (["oom"], OOM, True),
        (["oom"], KILL, False),
        (["3"], {"code": 3}, True),
        (["3"], {"code": 4}, False),
        (["64-78"], {"code": 78}, True),
        (["64-78"], {"code": 79}, False),
        ([], {"code": 3}, False),
    ],
)
def test_the_policy_says_after_which_ends(on: list[str], end: dict[str, Any], again: bool) -> None:
    job = running(workers=1, restart={**ANY, "on": on})
    job.exit("worker-0", **end)
    assert job.running() == ("worker-0/2" if again else "")


@pytest.mark.parametrize(
    ("code", "states", "kinds"),
    [
        (0, "worker-0 succeeded", [events.LAUNCHER_REGISTERED, events.TASK_SUCCEEDED, events.RUN_ENDED]),
        (3, "worker-0 failed", [events.LAUNCHER_REGISTERED, events.TASK_FAILED, events.RUN_ENDED]),
    ],
)
def test_an_end_that_the_launcher_before_could_not_report_counts(code: int, states: str, kinds: list[str]) -> None:
    job = running(workers=1)
    launcher = job.launchers["worker-0"]
    launcher.end_child(code, job.now)
    launcher.instance = "the launcher after a reboot"
    job.settle()
    assert job.states() == states
    assert [kind for kind, _ in job.happened()] == kinds


def test_a_training_is_stopped_and_tensorboard_goes_on() -> None:
    world = running(workers=2, tensorboard=True)
    world.stop(auxiliary=False)
    assert world.running() == "tensorboard-0/1"
    assert world.verdict() == "stopped: by request"
    world.stop(auxiliary=False)
    world.give(workers=2, tensorboard=True)
    assert world.running() == "tensorboard-0/1", "it stays stopped, whatever is given again"
    world.stop()
    assert world.running() == ""
