"""Changes take their turns in the order of job and index; one that does not come up stops those after it."""

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.props import task_props
from tests.unit.simulation import World
from tfdeploy.agent.states import Job, Verdict
from tfdeploy.backends.base import EngineTask
from tfdeploy.backends.docker import rolling
from tfdeploy.backends.docker.rolling import Order, Turns, replace, runs, turns
from tfdeploy.backends.docker.services import Service, task
from tfdeploy.backends.docker.swarm import Swarm
from tfdeploy.errors import BackendError

NAMES: Mapping[Order, str] = {
    (1, 0): "ps-0",
    (1, 1): "ps-1",
    (2, 0): "worker-0",
    (2, 1): "worker-1",
    (2, 10): "worker-10",
}

LINGERING = 0.05
"""How long a change takes, so that another one beside it would be seen."""


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "_COME_UP_SECONDS", 0.2)
    monkeypatch.setattr(rolling, "_LOOK_SECONDS", 0.0)


class Rolled:
    """All changes of one `up`, each in a thread of its own."""

    def __init__(self, arrivals: Sequence[Order], failing: str = "") -> None:
        self.began: list[str] = []
        self.refused: dict[str, str] = {}
        self.most = self._now = 0
        self._failing = failing
        self._turns = Turns()
        self._end = threading.Event()
        threads = [threading.Thread(target=self._arrive, args=(order,)) for order in arrivals]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30.0)
        assert not any(thread.is_alive() for thread in threads)

    def _arrive(self, order: Order) -> None:
        try:
            self._turns.take(order, NAMES[order], lambda: self._change(NAMES[order]))
        except BackendError as error:
            self.refused[NAMES[order]] = str(error)

    def _change(self, hostname: str) -> None:
        self._now += 1
        self.most = max(self.most, self._now)
        self.began.append(hostname)
        self._end.wait(LINGERING)
        self._now -= 1
        if hostname == self._failing:
            raise BackendError(f"{hostname} is broken")


@pytest.mark.parametrize(
    "arrivals", [sorted(NAMES), sorted(NAMES, reverse=True), [(2, 10), (1, 1), (2, 0), (1, 0), (2, 1)]]
)
def test_turns_go_by_job_and_index_in_whatever_order_they_arrive(arrivals: list[Order]) -> None:
    rolled = Rolled(arrivals)
    assert rolled.began == [NAMES[order] for order in sorted(NAMES)]
    assert (rolled.most, rolled.refused) == (1, {})


def test_after_one_that_fails_the_others_keep_what_they_have() -> None:
    rolled = Rolled(sorted(NAMES, reverse=True), failing="ps-1")
    assert rolled.began == ["ps-0", "ps-1"]
    why = "keeps its old settings, because ps-1 did not come up with its new"
    late = ("worker-0", "worker-1", "worker-10")
    assert rolled.refused == {"ps-1": "ps-1 is broken", **{name: f"{name} {why}" for name in late}}


def test_each_cluster_has_turns_of_its_own() -> None:
    assert turns("engine one") is turns("engine one")
    assert turns("engine one") is not turns("engine two")


def job() -> World:
    made = World(ps=1, workers=2)
    made.come()
    return made


def test_only_a_task_at_work_waits_for_its_turn() -> None:
    world = job()
    assert runs(world.job, "worker-1")
    assert not runs(world.job, "worker-7")
    world.job.verdict = Verdict("failed", "", 0.0)
    assert not runs(world.job, "worker-1")
    world.job.verdict = None
    world.job.tasks["worker-1"].state = "restarting"
    assert runs(world.job, "worker-1"), "those after it wait until it runs again"
    world.exit("worker-0", 3)
    assert world.verdict() != "none"
    assert not runs(world.job, "worker-0")


class Swarming:
    """A Swarm of one service, whose task the engine sees so."""

    def __init__(self, seen: EngineTask | None, broken: Iterator[int]) -> None:
        self.ensured: list[Service] = []
        self._seen = seen
        self._broken = broken

    def ensure(self, wanted: Service) -> None:
        self.ensured.append(wanted)

    def fate(self, _: str) -> tuple[EngineTask | None, list[dict[str, Any]]]:
        """With so many tasks that came to nothing."""
        broken = range(next(self._broken))
        return self._seen, [{"ID": str(number), "Status": {"Err": "will not start"}} for number in broken]


class Looks:
    """Jobs that a test shows one after the other, the last one for ever."""

    def __init__(self, jobs: Iterator[Job | None]) -> None:
        self._jobs = jobs
        self._last: Job | None = None

    def __call__(self) -> Job | None:
        self._last = next(self._jobs, self._last)
        return self._last


def replaced(jobs: Sequence[Job | None], seen: EngineTask | None = None, broken: Iterator[int] | None = None) -> None:
    """Replace worker-1 while the keeper shows these jobs; what does not come up gets its former settings again."""
    swarm = Swarming(seen, broken or itertools.repeat(0))
    wanted, former = task(task_props()), task(task_props(memory=7))
    try:
        replace(cast(Swarm, swarm), wanted, former, "worker-1", Looks(iter(jobs)))
    except BackendError:
        assert swarm.ensured == [wanted, former]
        raise
    assert swarm.ensured == [wanted]


def with_task(**fields: Any) -> Job:
    """The job, with worker-1 like this."""
    made = Job.from_dict(job().job.to_dict())
    vars(made.tasks["worker-1"]).update(fields)
    return made


OLD = {"instance": "old", "state": "running", "started": 5.0, "seen": 100.0}


def test_it_has_come_up_when_another_launcher_runs_it_and_goes_on_running() -> None:
    waiting = with_task(**{**OLD, "instance": "new", "state": "waiting"})
    fresh = with_task(instance="new", state="running", started=100.0, seen=101.0)
    settled = with_task(instance="new", state="running", started=100.0, seen=102.5)
    replaced([with_task(**OLD), with_task(**OLD), None, waiting, fresh, settled])


@pytest.mark.parametrize(
    "last",
    [
        with_task(**OLD),
        with_task(**{**OLD, "instance": "new", "state": "restarting"}),
        with_task(instance="new", state="running", started=100.0, seen=101.0),
        None,
    ],
)
def test_it_has_not_come_up_while_it_does_not_run_for_a_while(last: Job | None) -> None:
    rejected = EngineTask(False, "", "rejected", "No such image: gone:1")
    wrong = "^worker-1 did not come up again with its new settings: No such image: gone:1$"
    with pytest.raises(BackendError, match=wrong):
        replaced([with_task(**OLD), last], rejected)


def test_where_the_engine_gives_no_reason_its_word_or_the_want_of_a_service_is_told() -> None:
    with pytest.raises(BackendError, match=r": scheduled$"):
        replaced([with_task(**OLD)], EngineTask(True, "", "scheduled"))
    with pytest.raises(BackendError, match=r": its service is gone$"):
        replaced([with_task(**OLD)])


@pytest.mark.parametrize("state", ["failed", "succeeded", "stopped"])
def test_what_this_run_starts_no_more_is_not_waited_for(state: str) -> None:
    replaced([with_task(**OLD), with_task(**{**OLD, "state": state})])


def test_a_pull_takes_the_time_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(step=0.15)
    monkeypatch.setattr(rolling, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None))
    settled = with_task(instance="new", state="running", started=100.0, seen=103.0)
    replaced([*[with_task(**OLD)] * 50, settled], EngineTask(True, "", "pulling"))


def test_what_cannot_start_is_given_up_though_the_engine_tries_on() -> None:
    with pytest.raises(BackendError, match=r": will not start$"):
        replaced([with_task(**OLD)], EngineTask(True, "", "starting"), itertools.count(1))
