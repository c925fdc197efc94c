"""The life of a job as the keeper decides it: reports in, orders out."""

from typing import Any

import pytest

from tests.unit.simulation import World

ANY = {"maximum": 3, "backoff": "1s", "on": ["any"]}


def world(**args: Any) -> World:
    """A job of which all tasks run."""
    made = World(**args)
    made.come()
    made.events.clear()
    return made


def test_nobody_starts_before_all_have_come() -> None:
    job = World(ps=1, workers=2)
    job.come("ps-0", "worker-0")
    assert job.states() == "ps-0 waiting (worker-1), worker-0 waiting (worker-1), worker-1 scheduled"
    assert job.running() == ""
    job.come("worker-1")
    assert job.states() == "ps-0 running, worker-0 running, worker-1 running"
    assert job.events == [
        "launcher of ps-0 came",
        "launcher of worker-0 came",
        "launcher of worker-1 came",
        "all 3 tasks have come: ps-0, worker-0, worker-1",
        "worker-1 started (attempt 1)",
        "ps-0 started (attempt 1)",
        "worker-0 started (attempt 1)",
    ]


def test_everybody_gets_the_same_book_in_the_order_of_the_tasks() -> None:
    job = world(ps=1, workers=1)
    assert [launcher.book for launcher in job.launchers.values()] == 2 * [
        [["ps-0", "ps", 0, "127.0.0.1:20000"], ["worker-0", "worker", 0, "127.0.0.1:21000"]]
    ]


def test_who_does_not_come_in_time_fails_the_job_by_name() -> None:
    job = World(ps=1, workers=2, start_timeout="60s")
    job.come("worker-0")
    job.wait(60)
    assert job.verdict() == "none"
    job.wait(1)
    assert job.verdict() == "failed: ps-0, worker-1 did not come within 60 s"
    assert job.states() == "ps-0 stopped (job failed), worker-0 stopped (job failed), worker-1 stopped (job failed)"


@pytest.mark.parametrize(
    ("args", "ends", "verdict"),
    [
        ({"chief": 1, "workers": 1}, ["worker-0"], "none"),
        ({"chief": 1, "workers": 1}, ["chief-0"], "succeeded: chief-0 succeeded"),
        ({"workers": 2}, ["worker-0"], "none"),
        ({"workers": 2}, ["worker-0", "worker-1"], "succeeded: worker-0, worker-1 succeeded"),
        ({"workers": 2, "success": "worker 0"}, ["worker-1"], "none"),
        ({"workers": 2, "success": "worker 0"}, ["worker-0"], "succeeded: worker-0 succeeded"),
        ({"workers": 1, "gpu_workers": 1, "success": "worker 0"}, ["gpu-worker-0"], "none"),
        ({"gpu_workers": 2, "success": "worker 0"}, ["gpu-worker-0"], "succeeded: gpu-worker-0 succeeded"),
        ({"workers": 1, "gpu_workers": 1}, ["worker-0"], "none"),
        (
            {"workers": 1, "gpu_workers": 1},
            ["worker-0", "gpu-worker-0"],
            "succeeded: worker-0, gpu-worker-0 succeeded",
        ),
        ({"chief": 1, "workers": 1, "success": "all workers"}, ["worker-0"], "none"),
        (
            {"chief": 1, "workers": 1, "success": "all workers"},
            ["worker-0", "chief-0"],
            "succeeded: chief-0, worker-0 succeeded",
        ),
        ({"serve": True, "ps": 1, "workers": 1}, ["worker-0"], "none"),
        (
            {"serve": True, "chief": 1, "workers": 1, "command": ["python"]},
            ["chief-0"],
            "succeeded: chief-0 succeeded",
        ),
        ({"serve": True, "ps": 1, "workers": 1}, ["worker-0", "ps-0"], "succeeded: ps-0, worker-0 succeeded"),
    ],
)
def test_the_success_rule_decides(args: dict[str, Any], ends: list[str], verdict: str) -> None:
    job = world(**args)
    for hostname in ends:
        job.exit(hostname)
    assert job.verdict() == verdict


def test_after_the_success_the_others_are_stopped_and_all_launchers_end() -> None:
    job = world(ps=1, workers=1)
    job.exit("worker-0")
    assert job.states() == "ps-0 stopped (job finished), worker-0 succeeded"
    assert job.launchers == {}
    assert job.events == [
        "worker-0 succeeded",
        "job succeeded: worker-0 succeeded",
        "ps-0 stopped (job finished)",
    ]


def test_after_the_user_stops_the_job_all_are_stopped_by_request() -> None:
    job = world(ps=1, workers=1)
    job.stop()
    assert job.states() == "ps-0 stopped (by request), worker-0 stopped (by request)"
    assert job.launchers == {}


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        ({"code": 3}, "failed", "worker-0 failed (exit 3)"),
        ({"code": 137, "signal": "SIGKILL"}, "killed", "worker-0 was killed (SIGKILL)"),
        ({"code": 137, "signal": "SIGKILL", "oom": True}, "out of memory", "worker-0 ran out of memory"),
    ],
)
def test_a_task_that_ends_badly_for_good_fails_the_job(end: dict[str, Any], state: str, reason: str) -> None:
    job = world(ps=1, workers=2, restart={"maximum": 0})
    job.exit("worker-0", **end)
    assert job.verdict() == f"failed: {reason}"
    assert job.states() == f"ps-0 stopped (job failed), worker-0 {state}, worker-1 stopped (job failed)"


def test_a_ps_that_fails_for_good_fails_the_job_though_it_does_not_decide() -> None:
    job = world(ps=1, workers=1)
    job.exit("ps-0", 1)
    assert job.verdict() == "failed: ps-0 failed (exit 1)"


def test_a_task_that_fails_after_the_success_changes_no_verdict() -> None:
    job = world(workers=2, success="worker 0")
    job.launchers["worker-0"].end_child(0, job.now)
    job.sync("worker-0")
    job.exit("worker-1", 5)
    assert job.verdict() == "succeeded: worker-0 succeeded"
    assert job.states() == "worker-0 succeeded, worker-1 failed"


def test_an_evaluator_may_finish_by_itself_within_its_grace() -> None:
    job = world(workers=1, evaluator=1, grace="10s")
    job.exit("worker-0")
    job.wait(9)
    assert (job.running(), job.states()) == ("evaluator-0/1", "worker-0 succeeded, evaluator-0 running")
    job.exit("evaluator-0")
    assert job.states() == "worker-0 succeeded, evaluator-0 succeeded"


def test_an_evaluator_is_stopped_when_its_grace_is_over() -> None:
    job = world(workers=1, evaluator=1, grace="10s")
    job.exit("worker-0")
    job.wait(10)
    assert job.states() == "worker-0 succeeded, evaluator-0 stopped (job finished)"


def test_after_a_failure_an_evaluator_has_no_grace() -> None:
    job = world(workers=1, evaluator=1, grace="10s")
    job.exit("worker-0", 1)
    assert job.states() == "worker-0 failed, evaluator-0 stopped (job failed)"


def test_a_restart_waits_for_its_time_and_then_runs() -> None:
    job = world(workers=1, restart=ANY)
    job.exit("worker-0", 3)
    assert job.states() == "worker-0 restarting (in 1 s (1 of 3) after exit 3)"
    job.wait(0.9)
    assert job.running() == ""
    job.wait(0.1)
    assert job.states() == "worker-0 running"
    assert job.running() == "worker-0/2"


def test_the_pause_doubles_up_to_five_minutes() -> None:
    job = world(workers=1, restart={**ANY, "maximum": 12, "backoff": "2s"})
    pauses = []
    for _ in range(10):
        job.exit("worker-0", 3)
        pauses.append(job.job.tasks["worker-0"].not_before - job.now)
        job.wait(pauses[-1])
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_pause_longer_than_five_minutes_stays_as_it_was_asked_for() -> None:
    job = world(workers=1, restart={**ANY, "backoff": "10m"})
    job.exit("worker-0", 3)
    assert job.states() == "worker-0 restarting (in 600 s (1 of 3) after exit 3)"


def test_restarts_without_end_do_not_overflow() -> None:
    job = world(workers=1, restart={**ANY, "maximum": 1_000_000, "backoff": "0"})
    job.job.tasks["worker-0"].failures = 5_000
    job.exit("worker-0", 3)
    assert job.running() == "worker-0/2"


def test_after_the_last_restart_the_task_has_failed() -> None:
    job = world(workers=1, restart={**ANY, "maximum": 2})
    for _ in range(3):
        job.exit("worker-0", 3)
        job.wait(300)
    assert job.events[-2:] == ["worker-0 failed (exit 3); not restarted", "job failed: worker-0 failed (exit 3)"]
    assert job.job.tasks["worker-0"].attempt == 3


KILL = {"code": 137, "signal": "SIGKILL"}
OOM = {**KILL, "oom": True}


@pytest.mark.parametrize(
    ("on", "end", "again"),
    [
        (["any"], {"code": 3}, True),
        (["any"], OOM, True),
        (["signal"], KILL, True),
        (["signal"], OOM, False),
        (["signal"], {"code": 137}, False),
        (["oom"], OOM, True),
        (["oom"], KILL, False),
        (["3"], {"code": 3}, True),
        (["3"], {"code": 4}, False),
        (["64-78"], {"code": 64}, True),
        (["64-78"], {"code": 78}, True),
        (["64-78"], {"code": 79}, False),
        (["137"], KILL, True),
        (["3", "oom"], OOM, True),
        ([], {"code": 3}, False),
    ],
)
def test_the_policy_says_after_which_ends(on: list[str], end: dict[str, Any], again: bool) -> None:
    job = world(workers=1, restart={**ANY, "on": on})
    job.exit("worker-0", **end)
    assert job.states().startswith("worker-0 restarting") == again


def test_a_job_has_a_policy_of_its_own() -> None:
    job = world(ps=1, workers=1, restart={"maximum": 0}, jobs={"ps": {"restart": ANY}})
    job.exit("ps-0", 3)
    assert job.verdict() == "none"
    job.exit("worker-0", 3)
    assert job.verdict() == "failed: worker-0 failed (exit 3)"
