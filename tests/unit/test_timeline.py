"""The keeper's own words become a timeline with reasons."""

from typing import Any

import pytest

from tests.unit.simulation import World
from tfdeploy.timeline import happenings


def told(*texts: str) -> list[tuple[str, str, str]]:
    return [one[1:] for one in happenings([{"at": float(at), "text": text} for at, text in enumerate(texts)])]


@pytest.mark.parametrize(
    ("text", "happening"),
    [
        ("run given", ("", "scheduled", "")),
        ("this run is the present one again", ("", "resumed", "")),
        ("launcher of worker-0 came", ("worker-0", "came", "")),
        ("worker-0 started (attempt 1)", ("worker-0", "started", "")),
        ("worker-0 started (attempt 3)", ("worker-0", "restarted", "attempt 3")),
        (
            "worker-0 ended (SIGKILL); restarting in 8 s (1 of 3) after SIGKILL",
            ("worker-0", "SIGKILL", "restarting in 8 s (1 of 3)"),
        ),
        (
            "worker-0 ended (out of memory); restarting in 1 s (1 of 3) after out of memory",
            ("worker-0", "out of memory", "restarting in 1 s (1 of 3)"),
        ),
        ("worker-0 failed (exit 3); not restarted", ("worker-0", "exit 3", "not restarted")),
        ("worker-0 out of memory (out of memory); not restarted", ("worker-0", "out of memory", "not restarted")),
        ("worker-0 succeeded", ("worker-0", "succeeded", "")),
        ("worker-0 stopped (job finished)", ("worker-0", "stopped", "job finished")),
        ("worker-0 interrupted: spot: it goes", ("worker-0", "interrupted", "spot: it goes")),
        ("worker-0 is restarted: its settings have changed", ("worker-0", "restarting", "its settings have changed")),
        ("worker-0 is restarted by request", ("worker-0", "restarting", "by request")),
        ("worker-0 is replaced by request", ("worker-0", "replacing", "by request")),
        ("worker-0 is taken away", ("worker-0", "taken away", "")),
        ("job succeeded: worker-0 succeeded", ("", "job finished", "worker-0 succeeded")),
        ("job failed: worker-0 failed (exit 3)", ("", "job failed", "worker-0 failed (exit 3)")),
        ("dismissed", ("", "dismissed", "nothing is to go on")),
        ("job stopped by request", ("", "job stopped", "by request")),
        (
            "an address has changed: all tasks start again",
            ("", "an address has changed", "all tasks start again"),
        ),
        ("who knows what", ("", "who knows what", "")),
    ],
)
def test_each_of_the_keepers_words_has_its_task_and_reason(text: str, happening: tuple[str, str, str]) -> None:
    assert told(text) == [happening]


def test_a_launcher_that_comes_again_tells_that_its_machine_or_process_was_lost() -> None:
    ((task, what, reason),) = told("launcher of worker-0 was lost with its child")
    assert (task, what) == ("worker-0", "lost")
    assert "machine" in reason


def test_who_came_earlier_has_waited_for_the_last() -> None:
    came = [f"launcher of {name} came" for name in ("ps-0", "worker-0", "ps-1")]
    assert told(*came, "all 3 tasks have come: ps-0, ps-1, worker-0")[3:] == [
        ("ps-0", "waited for ps-1", "3.0 s"),
        ("worker-0", "waited for ps-1", "2.0 s"),
        ("", "all here", "ps-0, ps-1, worker-0"),
    ]


def test_nobody_waits_for_what_looks_on() -> None:
    came = [f"launcher of {name} came" for name in ("ps-0", "worker-0", "tensorboard-0")]
    assert told(*came, "all 2 tasks have come: ps-0, worker-0")[3:] == [
        ("ps-0", "waited for worker-0", "3.0 s"),
        ("", "all here", "ps-0, worker-0"),
    ]


def test_nobody_waits_alone() -> None:
    assert told("launcher of w-0 came", "all 1 tasks have come: w-0")[1:] == [("", "all here", "w-0")]


class Diary(World):
    """A world that keeps what happened."""

    def __init__(self, **args: Any) -> None:
        self.told: list[dict[str, Any]] = []
        super().__init__(**args)

    def note(self, events: list[str]) -> None:
        self.told += [{"at": self.now, "text": text} for text in events]


def test_nothing_that_the_keeper_says_in_a_life_is_unknown() -> None:
    world = Diary(ps=1, workers=1, restart={"maximum": 1, "backoff": "1s", "on": ["any"]})
    world.come("worker-0")
    world.wait(1)
    world.come("ps-0")
    world.wait(1)
    world.exit("worker-0", 3)
    world.wait(10)
    world.exit("worker-0", 3)
    found = happenings(world.told)
    assert [(one.task, one.what) for one in found if " " in one.what] == [
        ("worker-0", "waited for ps-0"),
        ("", "all here"),
        ("worker-0", "exit 3"),
        ("worker-0", "exit 3"),
        ("", "job failed"),
    ]


def test_nor_in_one_with_tensorboard_a_restart_by_request_and_a_dismissal() -> None:
    world = Diary(ps=1, workers=1, tensorboard=True)
    world.come("worker-0", "ps-0", "tensorboard-0")
    for hostname in ("worker-0", "tensorboard-0"):
        world.again(hostname)
    world.again("ps-0", "replaced")
    world.exit("worker-0")
    world.exit("tensorboard-0", 1)
    world.again("tensorboard-0")
    world.wait(60)
    world.stop()
    found = happenings(world.told)
    assert "dismissed" in [one.what for one in found]
    assert [(one.task, one.what) for one in found if " " in one.what] == [
        ("worker-0", "waited for ps-0"),
        ("", "all here"),
        ("", "job finished"),
        ("tensorboard-0", "exit 1"),
    ]
    assert {one.task for one in found if one.reason == "restarted by request"} == {"worker-0", "tensorboard-0"}
