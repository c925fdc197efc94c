"""Following a cluster until its verdict or the deadline."""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from tests.unit.cases import plan, spec
from tests.unit.simulation import World
from tfdeploy import observe
from tfdeploy.backends.base import Backend, Cluster, Sight
from tfdeploy.observe import Watch, follow
from tfdeploy.report import Report


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "_POLL_SECONDS", 0.0)


class Looks:
    """A backend that can only be looked at, and shows these sights one after the other, the last one for ever."""

    def __init__(self, sights: Sequence[Sight]) -> None:
        self.sights = list(sights)
        self.count = 0

    def look(self, cluster: Cluster, token: str, ask: Any) -> Sight:
        self.count += 1
        return self.sights[min(self.count, len(self.sights)) - 1]


def sight(world: World, *lines: tuple[float, str], hostname: str = "worker-0") -> Sight:
    logs = {hostname: [[at, 1, text] for at, text in lines]}
    view = {"job": world.job.to_dict(), "logs": logs, "metrics": {}, "events": [], "at": world.now}
    return Sight(world.now, view, None, None)


def watch(sights: Sequence[Sight], **args: Any) -> tuple[Watch, Looks]:
    looks = Looks(sights)
    return Watch(cast(Backend, looks), cast(Cluster, {}), spec(**args), plan(**args)), looks


def followed(sights: Sequence[Sight], seconds: float = 60.0, **args: Any) -> tuple[Report, int, list[str]]:
    """The last look, how many there were, and what was told meanwhile."""
    made, looks = watch(sights, **args)
    told: list[str] = []
    return finish(follow(made, seconds, told.append)), looks.count, told


def finish(work: Coroutine[Any, Any, Report]) -> Report:
    """Its result, from a loop of its own: `asyncio.run` would leave the thread without one, and Pulumi's mocks need it."""
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        return loop.run_until_complete(work)


def running(**args: Any) -> World:
    world = World(**args)
    world.come()
    return world


def test_it_looks_until_the_verdict_stands_and_nothing_runs() -> None:
    world = running(ps=1, workers=1)
    first = sight(world)
    world.launchers["worker-0"].end_child(0, world.now)
    world.sync("worker-0")
    second = sight(world)
    world.settle()
    seen, count, _ = followed([first, second, sight(world)], ps=1, workers=1)
    assert (seen.state, count) == ("succeeded", 3)
    assert [row["status"] for row in seen.tasks] == ["stopped (job finished)", "succeeded"]


def test_tasks_that_only_serve_are_waited_for_until_all_run() -> None:
    world = running(serve=True, ps=1, workers=1)
    last = sight(world)
    world.job.tasks["worker-0"].state = "starting"
    seen, count, _ = followed([sight(world), last], serve=True, ps=1, workers=1)
    assert (seen.state, count) == ("running", 2)


def test_it_looks_once_when_there_is_no_time_to_wait() -> None:
    seen, count, _ = followed([sight(running(workers=1))], seconds=0.0, workers=1)
    assert (seen.state, count) == ("running", 1)


def test_it_looks_no_more_when_the_user_has_detached() -> None:
    made, looks = watch([sight(running(workers=1))], workers=1)
    made.detached.set()
    assert finish(follow(made, 60.0, print)).state == "running"
    assert looks.count == 1


def test_each_line_is_told_once_as_it_comes() -> None:
    world = running(workers=1)
    sights = [sight(world, (1.0, "a")), sight(world, (1.0, "a"), (2.0, "b"), (2.0, "c"))]
    world.exit("worker-0")
    _, _, told = followed([*sights, sight(world, (2.0, "b"), (2.0, "c"), (3.0, "d"))], workers=1)
    assert told == ["[worker-0] a", "[worker-0] b", "[worker-0] c", "[worker-0] d"]


def test_the_chief_is_the_one_that_people_look_at() -> None:
    world = running(chief=1, workers=1)
    world.exit("chief-0")
    _, _, told = followed([sight(world, (1.0, "hello"), hostname="chief-0")], chief=1, workers=1)
    assert told == ["[chief-0] hello"]


def test_before_the_first_line_the_states_are_told_when_they_change() -> None:
    world = World(workers=2)
    world.come("worker-0")
    first = sight(world)
    world.come("worker-1")
    second = sight(world)
    world.exit("worker-0")
    world.exit("worker-1")
    _, _, told = followed([first, first, second, sight(world)], workers=2)
    assert told == [
        "worker-0 waiting for worker-1, worker-1 scheduled",
        "worker-0 running, worker-1 running",
        "worker-0 succeeded, worker-1 succeeded",
    ]
