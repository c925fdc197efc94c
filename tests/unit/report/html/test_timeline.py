"""Events become phases."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.simulation import World
from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import STARTUP_TIMEOUT, STOP_REQUESTED, Ended, RunResult
from tfdeploy.report.html.timeline import Timeline, timeline

NOW = 100.0
STARTED = Event(events.TASK_STARTED, task="w-0", attempt=1)
SUBMITTED = Event(events.RUN_SUBMITTED)
SUCCEEDED = Event(events.TASK_SUCCEEDED, task="w-0")
FAILED = Event(events.RUN_ENDED, result=RunResult("failed", STARTUP_TIMEOUT, 0.0, ["w-1"]))
STOPPED = Event(events.RUN_ENDED, result=RunResult("stopped", STOP_REQUESTED, 0.0))
KILLED, EXITED, NO_MEMORY = Ended(137, "SIGKILL"), Ended(3), Ended(137, "SIGKILL", True)


def registered(hostname: str) -> Event:
    return Event(events.LAUNCHER_REGISTERED, task=hostname)


def each_second(*happened: Event) -> list[Event]:
    """The events, one a second from 0 on."""
    return [Event(**{**vars(event), "at": float(second)}) for second, event in enumerate(happened)]


def drawn(hostname: str, *happened: Event, now: float = NOW) -> list[tuple[str, float, float, str]]:
    found = timeline([hostname], each_second(*happened), now)
    assert found is not None
    return [(phase.state, phase.begin, phase.end, phase.note) for phase in found.lanes[hostname]]


def states(found: Timeline | None, hostname: str) -> list[str]:
    assert found is not None
    return [phase.state for phase in found.lanes[hostname]]


@pytest.mark.parametrize(
    ("event", "state", "note"),
    [
        (Event(events.TASK_RESTARTING, task="w-0", exit=KILLED, delay=8.0), "restarting", "SIGKILL"),
        (Event(events.TASK_FAILED, task="w-0", exit=EXITED), "failed", "exit 3"),
        (Event(events.TASK_FAILED, task="w-0", exit=KILLED), "killed", "SIGKILL"),
        (Event(events.TASK_FAILED, task="w-0", exit=NO_MEMORY), "out of memory", "out of memory"),
        (Event(events.TASK_INTERRUPTED, task="w-0", reason="spot"), "interrupted", "spot"),
        (Event(events.SETTINGS_CHANGED, task="w-0"), "restarting", "its settings have changed"),
        (Event(events.TASK_STOPPED, task="w-0", reason="run finished"), "stopped", "run finished"),
        (Event(events.LAUNCHER_LOST, task="w-0"), "lost", ""),
        (Event(events.ADDRESS_CHANGED), "starting", ""),
        (Event(events.TASKS_CHANGED, tasks=["w-0", "w-1"]), "starting", ""),
    ],
)
def test_an_event_begins_a_phase(event: Event, state: str, note: str) -> None:
    assert drawn("w-0", SUBMITTED, STARTED, event)[-1] == (state, 2, NOW, note)


@pytest.mark.parametrize(
    "event",
    [
        Event(events.TASK_SUCCEEDED, task="w-1"),
        Event(events.TASK_SUCCEEDED, task="w-00"),
        Event(events.RESTART_REQUESTED, task="w-0"),
        Event(events.REPLACE_REQUESTED, task="w-0"),
        SUBMITTED,
    ],
)
def test_other_events_begin_none(event: Event) -> None:
    assert drawn("w-0", STARTED, event)[-1] == ("running", 0, NOW, "attempt 1")


def test_the_result_stops_tasks_that_do_not_run() -> None:
    found = timeline(["w-0", "w-1"], each_second(STARTED, FAILED), NOW)
    assert (states(found, "w-0"), states(found, "w-1")) == (["running"], ["scheduled", "stopped"])
    assert found is not None
    assert (found.result, found.end) == ((1.0, "failed"), 1.0)


def test_a_task_that_is_no_longer_planned_has_a_lane() -> None:
    removed = Event(events.TASK_REMOVED, task="w-1")
    found = timeline(["w-0"], each_second(SUBMITTED, registered("w-1"), removed), NOW)
    assert states(found, "w-1") == ["scheduled", "waiting", "removed"]


def test_a_job_is_told_as_it_was_lived() -> None:
    world = World(ps=1, workers=1, restart={"maximum": 2, "backoff": "1s", "on": ["any"]})
    world.wait(1)
    world.come("worker-0")
    world.wait(1)
    world.come("ps-0")
    for seconds in (1, 10):
        world.wait(seconds)
        world.exit("worker-0", 3)
    world.wait(10)
    world.wait(1)
    world.exit("worker-0")
    found = timeline(list(world.job.tasks), world.events, world.now)
    assert states(found, "worker-0") == ["waiting", *["running"] * 2, "restarting", "running", "succeeded"]
    assert states(found, "ps-0") == ["scheduled", "running", "stopped"]


@pytest.mark.parametrize(
    ("end", "state"), [(FAILED, "starting"), (STOPPED, "stopped"), (Event(events.STOP_REQUESTED), "stopped")]
)
def test_an_auxiliary_task_ends_only_at_the_users_request(end: Event, state: str) -> None:
    assert drawn("tensorboard-0", SUBMITTED, registered("tensorboard-0"), end, SUBMITTED)[-1][0] == state


def test_a_new_launcher_changes_nothing_of_a_task_that_has_ended() -> None:
    assert drawn("w-0", STARTED, SUCCEEDED, registered("w-0"))[-1][0] == "succeeded"


@given(
    st.lists(st.tuples(st.floats(0, 1e10), st.sampled_from([SUBMITTED, STARTED, SUCCEEDED, FAILED, registered("w-0")])))
)
def test_lanes_have_no_gaps(happened: list[tuple[float, Event]]) -> None:
    ordered = sorted(happened, key=lambda pair: pair[0])
    found = timeline(["w-0"], [Event(**{**vars(event), "at": at}) for at, event in ordered], 1e10)
    for phases in found.lanes.values() if found else []:
        assert all(one.end == other.begin for one, other in itertools.pairwise(phases))
        assert all(phase.begin <= phase.end for phase in phases)
