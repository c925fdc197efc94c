"""Events become sentences: each kind has one, and waiting is derived."""

from typing import Any

import pytest

from tests.unit.simulation import World
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import STARTUP_TIMEOUT, SUCCEEDED, UNTIL, Ended, ReachedMetric, RunResult
from tfdeploy.agent.record import stored_artifact
from tfdeploy.report.events import (
    REASONS,
    describe,
    document,
    exit_text,
    reason_text,
    result_text,
    sentence,
    with_waits,
)

RESULT = RunResult("failed", STARTUP_TIMEOUT, 1.0, ["ps-0"], Ended(3))
EXIT = {"code": 3, "signal": "", "out_of_memory": False}
KINDS = [value for name, value in vars(events).items() if name.isupper()]


def registered(*hostnames: str) -> list[Event]:
    """Launchers that register, one a second."""
    return [Event(events.LAUNCHER_REGISTERED, float(at), name) for at, name in enumerate(hostnames)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_sentence(kind: str) -> None:
    event = Event(kind, 1.0, "worker-0", state="pulling", result=RESULT, exit=Ended(3))
    assert describe(event)[0]
    assert document(event)["sentence"] == sentence(event)
    assert document(event)["exit"] == document(event)["result"]["exit"] == EXIT
    assert Event.from_dict(event.to_dict()) == event


@pytest.mark.parametrize(
    ("exit_", "text"),
    [
        (Ended(3), "exit 3"),
        (Ended(137, "SIGKILL"), "SIGKILL"),
        (Ended(137, "SIGKILL", True), "out of memory"),
        (None, ""),
    ],
)
def test_an_exit_has_a_text(exit_: Ended | None, text: str) -> None:
    assert exit_text(exit_) == text


@pytest.mark.parametrize(
    ("value", "threshold", "text"),
    [
        (0.953, 0.95, "accuracy 0.953 reached > 0.95 at step 4,200"),
        (0.95000001, 0.95, "accuracy 0.95000001 reached > 0.95 at step 4,200"),
    ],
)
def test_a_value_differs_from_the_threshold_that_it_passed(value: float, threshold: float, text: str) -> None:
    metric = ReachedMetric("accuracy", value, ">", threshold, "worker-0", 1, 4200)
    assert result_text(RunResult(SUCCEEDED, UNTIL, 1.0, ["worker-0"], reached=[metric])) == text


def test_the_data_of_an_event_is_in_its_document() -> None:
    event = Event(events.TASK_RESTARTING, 1.0, "worker-0", 2, exit=Ended(3), delay=8.0, failures=1, max_failures=3)
    assert document(event) == {
        "at": 1.0,
        "kind": "task_restarting",
        "task": "worker-0",
        "attempt": 2,
        "reason": "",
        "exit": EXIT,
        "delay": 8.0,
        "failures": 1,
        "max_failures": 3,
        "sentence": "worker-0 exit 3: restarting in 8 s (1 of 3)",
    }


def test_who_came_earlier_has_waited_for_the_last() -> None:
    ready = Event(events.BARRIER_PASSED, 3.0, tasks=["ps-0", "ps-1", "worker-0"])
    assert [
        (event.task, event.tasks, event.delay)
        for event in with_waits([*registered("ps-0", "worker-0", "ps-1"), ready])[3:]
    ] == [("ps-0", ["ps-1"], 3.0), ("worker-0", ["ps-1"], 2.0), ("", ready.tasks, 0.0)]


def test_no_task_waits_for_an_auxiliary_one() -> None:
    ready = Event(events.BARRIER_PASSED, 3.0, tasks=["ps-0", "worker-0"])
    waits = with_waits([*registered("ps-0", "worker-0", "tensorboard-0"), ready])[3:-1]
    assert [(event.task, event.tasks) for event in waits] == [("ps-0", ["worker-0"])]


def test_a_single_task_waits_for_none() -> None:
    ready = Event(events.BARRIER_PASSED, 1.0, tasks=["w-0"])
    assert with_waits([*registered("w-0"), ready])[1:] == [ready]


def kinds(world: World) -> list[tuple[str, str]]:
    """Kind and task of all events but the usual ones."""
    usual = (events.LAUNCHER_REGISTERED, events.TASK_STARTED, events.TASK_SUCCEEDED, events.TASK_STOPPED)
    return [(event.kind, event.task) for event in with_waits(world.events) if event.kind not in usual]


def test_a_run_with_tensorboard_restarts_by_request_and_a_stop() -> None:
    args: dict[str, Any] = {"ps": 1, "workers": 1, "tensorboard": True}
    world = World(**args)
    world.come("worker-0", "ps-0", "tensorboard-0")
    for hostname in ("worker-0", "tensorboard-0"):
        world.again(hostname)
    world.again("ps-0", "replaced")
    world.exit("worker-0")
    world.exit("tensorboard-0", 1)
    world.again("tensorboard-0")
    world.wait(60)
    world.stop()
    happened = kinds(world)
    assert (events.STOP_REQUESTED, "") in happened
    assert (events.REPLACE_REQUESTED, "ps-0") in happened
    interrupted = {event.task for event in world.events if event.reason == "restarted by request"}
    assert interrupted == {"worker-0", "tensorboard-0"}


def test_every_reason_has_a_sentence() -> None:
    names = ("LIMIT", "CHANGED", "UNREADABLE", "OUTSIDE", "NO_MATCH", "BAD_NAME", "DISK_FULL", "WRONG_HASH")
    reasons = {
        getattr(stored_artifact, name) for name in (*names, "OTHER_MACHINE", "CLUSTER_LIMIT", "RUN_LIMIT", "NOT_COPIED")
    }
    assert reasons == REASONS.keys()
    assert reason_text("of a newer version") == "of a newer version"
