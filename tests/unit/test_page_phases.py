"""What happened becomes phases: the keeper's own words, from a job that is lived through, and texts that nobody knows."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.simulation import World
from tfdeploy.page.content import Event
from tfdeploy.page.phases import Timeline, timeline

NOW = 100.0


def told(*texts: str) -> list[Event]:
    """Events, one a second from 0 on."""
    return [{"at": float(second), "text": text} for second, text in enumerate(texts)]


def drawn(hostname: str, *texts: str, now: float = NOW) -> list[tuple[str, float, float, str]]:
    found = timeline([hostname], told(*texts), now)
    assert found is not None
    return [(phase.state, phase.begin, phase.end, phase.note) for phase in found.lanes[hostname]]


def states(found: Timeline | None, hostname: str) -> list[str]:
    assert found is not None
    return [phase.state for phase in found.lanes[hostname]]


def test_a_task_comes_waits_runs_and_ends() -> None:
    assert drawn(
        "worker-0",
        "run given",
        "launcher of worker-0 came",
        "all 1 tasks have come: worker-0",
        "worker-0 started (attempt 1)",
        "worker-0 succeeded",
        "job succeeded: worker-0 succeeded",
    ) == [
        ("scheduled", 0, 1, ""),
        ("waiting", 1, 2, ""),
        ("starting", 2, 3, ""),
        ("running", 3, 4, "attempt 1"),
        ("succeeded", 4, 5, ""),
    ]


def test_a_phase_that_goes_on_ends_now() -> None:
    assert drawn("ps-0", "run given", "launcher of ps-0 came")[-1] == ("waiting", 1, NOW, "")


@pytest.mark.parametrize(
    ("text", "state", "note"),
    [
        ("w-0 ended (SIGKILL); restarting in 8 s (1 of 3) after SIGKILL", "restarting", "SIGKILL"),
        ("w-0 ended (exit 3); restarting in 1 s (1 of 3) after exit 3", "restarting", "exit 3"),
        ("w-0 failed (exit 3); not restarted", "failed", "exit 3"),
        ("w-0 killed (SIGSEGV); not restarted", "killed", "SIGSEGV"),
        ("w-0 out of memory (out of memory); not restarted", "out of memory", "out of memory"),
        ("w-0 interrupted: its machine is taken back", "interrupted", "its machine is taken back"),
        ("w-0 is restarted: its settings have changed", "restarting", "its settings have changed"),
        ("w-0 stopped (job finished)", "stopped", "job finished"),
        ("w-0 is taken away", "taken away", ""),
        ("launcher of w-0 was lost with its child", "lost", ""),
        ("an address has changed: all tasks start again", "starting", ""),
        ("the tasks are now w-0, w-1: all start again", "starting", ""),
    ],
)
def test_each_of_the_keepers_words_changes_the_lane(text: str, state: str, note: str) -> None:
    assert drawn("w-0", "run given", "w-0 started (attempt 1)", text)[-1] == (state, 2, NOW, note)


@pytest.mark.parametrize(
    "text", ["worker-1 succeeded", "worker-00 succeeded", "who knows", "", "worker-0 succeeded twice"]
)
def test_other_words_change_nothing(text: str) -> None:
    assert drawn("worker-0", "worker-0 started (attempt 1)", text)[-1] == ("running", 0, NOW, "attempt 1")


def test_the_verdict_stops_who_does_not_run() -> None:
    found = timeline(["w-0", "w-1"], told("w-0 started (attempt 1)", "job failed: w-1 did not come"), NOW)
    assert (states(found, "w-0"), states(found, "w-1")) == (["running"], ["scheduled", "stopped"])
    assert found is not None
    assert (found.verdict, found.end) == ((1.0, "failed"), 1.0)


def test_a_task_that_is_no_longer_planned_has_a_lane() -> None:
    found = timeline(["w-0"], told("run given", "launcher of w-1 came", "w-1 is taken away"), NOW)
    assert states(found, "w-1") == ["scheduled", "waiting", "taken away"]


def test_where_nothing_happened_there_is_no_timeline() -> None:
    assert timeline(["w-0"], [], NOW) is None


class Diary(World):
    """A world that keeps when everything happened."""

    def __init__(self, **args: Any) -> None:
        self.happened: list[Event] = []
        super().__init__(**args)

    def note(self, events: list[str]) -> None:
        self.happened += [{"at": self.now, "text": text} for text in events]


def test_a_job_is_told_as_it_was_lived() -> None:
    world = Diary(ps=1, workers=1, restart={"maximum": 1, "backoff": "1s", "on": ["any"]})
    world.wait(1)
    world.come("worker-0")
    world.wait(1)
    world.come("ps-0")
    world.wait(1)
    world.exit("worker-0", 3)
    world.wait(10)
    world.wait(1)
    world.exit("worker-0")
    found = timeline(list(world.job.tasks), world.happened, world.now)
    assert states(found, "worker-0") == ["waiting", "running", "restarting", "running", "succeeded"]
    assert states(found, "ps-0") == ["scheduled", "running", "stopped"]


def test_tensorboard_is_told_as_it_was_lived() -> None:
    world = Diary(ps=1, workers=1, tensorboard=True, restart={"maximum": 0})
    world.wait(1)
    world.come()
    world.wait(1)
    world.lose("ps-0")
    world.come("ps-0", port=29_999)
    assert "an address has changed: all tasks start again" in [event["text"] for event in world.happened]
    world.wait(1)
    world.exit("worker-0")
    found = timeline(list(world.job.tasks), world.happened, world.now)
    assert states(found, "tensorboard-0") == ["running"]
    assert states(found, "worker-0") == ["running", "running", "succeeded"]
    world.wait(1)
    world.exit("tensorboard-0", 1)
    world.wait(1)
    world.again("tensorboard-0")
    world.wait(1)
    world.stop()
    found = timeline(list(world.job.tasks), world.happened, world.now)
    assert states(found, "tensorboard-0") == ["running", "failed", "running", "stopped"]


@pytest.mark.parametrize(
    ("end", "state"), [("job failed: why", "starting"), ("job stopped by request", "stopped"), ("dismissed", "stopped")]
)
def test_what_looks_on_ends_by_the_users_word_alone(end: str, state: str) -> None:
    assert drawn("tensorboard-0", "run given", "launcher of tensorboard-0 came", end, "what else")[-1][0] == state


def test_a_new_launcher_changes_nothing_of_a_task_that_has_ended() -> None:
    assert drawn("w-0", "w-0 started (attempt 1)", "w-0 succeeded", "launcher of w-0 came")[-1][0] == "succeeded"


@given(
    st.lists(st.tuples(st.floats(0, 1e10), st.text(max_size=30) | st.sampled_from(["w-0 succeeded", "job failed: x"])))
)
def test_lanes_have_no_gaps(happened: list[tuple[float, str]]) -> None:
    found = timeline(["w-0"], [{"at": at, "text": text} for at, text in sorted(happened)], 1e10)
    for phases in found.lanes.values() if found else []:
        assert all(one.end == other.begin for one, other in itertools.pairwise(phases))
        assert all(phase.begin <= phase.end for phase in phases)
