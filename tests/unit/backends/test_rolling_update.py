"""A rolling update goes by job and index; a task that does not start again stops it."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.backends.conftest import Clock
from tests.unit.backends.docker.fake_engine import FakeSwarm, runner_of
from tests.unit.props import task_props
from tests.unit.simulation import World
from tests.waiting import until
from tfdeploy.agent.model.run_state import Ended, LauncherReport, RunResult, RunState
from tfdeploy.backends import container_runner, rolling_update
from tfdeploy.backends.base import EngineTask
from tfdeploy.backends.docker.swarm.services import task_service
from tfdeploy.backends.docker.swarm.swarm import Swarm
from tfdeploy.backends.rolling_update import (
    Position,
    StartClock,
    StartFailure,
    TaskHistory,
    Turns,
    replace_task,
    wait_for_start,
)
from tfdeploy.errors import BackendError, NotStarted

NAMES: Mapping[Position, str] = {
    (1, 0): "ps-0",
    (1, 1): "ps-1",
    (2, 0): "worker-0",
    (2, 1): "worker-1",
    (2, 10): "worker-10",
}

UPDATE_SECONDS = 0.05
"""How long an update takes, so that a second one at the same time would be counted."""


@pytest.fixture(autouse=True)
def short_times(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that turns the clock has the times that are used outside of tests."""
    if "clock" in request.fixturenames:
        return
    monkeypatch.setattr(rolling_update, "_START_TIMEOUT", 0.2)
    for name in ("_POLL_SECONDS", "_START_POLL_SECONDS", "_LONGEST_PAUSE"):
        monkeypatch.setattr(rolling_update, name, 0.0)
    monkeypatch.setattr(rolling_update, "GATHER_SECONDS", 0.5)


class Update:
    """All updates of one `pulumi up`, each in its own thread."""

    def __init__(self, arrivals: Sequence[Position], failing: str = "") -> None:
        self.order: list[str] = []
        self.refused: dict[str, str] = {}
        self.max_concurrent = self._concurrent = 0
        self._failing = failing
        self._turns = Turns()
        self._end = threading.Event()
        threads = [threading.Thread(target=self._arrive, args=(position,)) for position in arrivals]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30.0)
        assert not any(thread.is_alive() for thread in threads)

    def _arrive(self, position: Position) -> None:
        try:
            self._turns.take(position, NAMES[position], lambda: self._update(NAMES[position]))
        except BackendError as error:
            self.refused[NAMES[position]] = str(error)

    def _update(self, hostname: str) -> None:
        self._concurrent += 1
        self.max_concurrent = max(self.max_concurrent, self._concurrent)
        self.order.append(hostname)
        self._end.wait(UPDATE_SECONDS)
        self._concurrent -= 1
        if hostname == self._failing:
            raise BackendError(f"{hostname} is broken")


@pytest.mark.parametrize(
    "arrivals", [sorted(NAMES), sorted(NAMES, reverse=True), [(2, 10), (1, 1), (2, 0), (1, 0), (2, 1)]]
)
def test_the_order_is_that_of_job_and_index_not_of_arrival(arrivals: list[Position]) -> None:
    update = Update(arrivals)
    assert update.order == [NAMES[position] for position in sorted(NAMES)]
    assert (update.max_concurrent, update.refused) == (1, {})


def test_an_update_that_arrives_a_second_later_takes_its_turn_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the time that is used outside of tests
    now = [100.0]
    monkeypatch.setattr(rolling_update, "time", SimpleNamespace(monotonic=lambda: now[0]))
    turns, order, threads = Turns(), list[str](), list[threading.Thread]()

    def arrive(position: Position) -> None:
        turns.take(position, NAMES[position], lambda: order.append(NAMES[position]))

    for count, position in enumerate(((2, 10), (1, 0)), 1):
        threads.append(threading.Thread(target=arrive, args=(position,)))
        threads[-1].start()
        until(lambda count=count: len(turns._waiting) == count, "it has arrived")  # type: ignore[misc]
        assert order == [], "the first one has not waited"
        now[0] += 1.5
    now[0] += 10.0
    for thread in threads:
        thread.join(30.0)
    assert order == ["ps-0", "worker-10"]


def test_after_a_failure_the_other_tasks_keep_their_settings() -> None:
    update = Update(sorted(NAMES, reverse=True), failing="ps-1")
    assert update.order == ["ps-0", "ps-1"]
    reason = "keeps its old settings, because ps-1 did not start with its new settings"
    late = ("worker-0", "worker-1", "worker-10")
    assert update.refused == {"ps-1": "ps-1 is broken", **{name: f"{name} {reason}" for name in late}}


def job() -> World:
    world = World(ps=1, workers=2)
    world.come()
    return world


class OneService(FakeSwarm):
    """A Swarm of one service with a fixed state."""

    def __init__(self, state: EngineTask | None = None, failures: Iterator[int] | None = None) -> None:
        super().__init__()
        self.state = state
        self._failures = failures or itertools.repeat(0)

    def history(self, _: str) -> TaskHistory:
        failures = range(next(self._failures))
        return TaskHistory(self.state, [StartFailure(str(number), "will not start") for number in failures])


def observations(*runs: RunState | None) -> Callable[[], RunState | None]:
    """Observes these runs one after the other; the last one is repeated."""
    observed = itertools.chain(runs, itertools.repeat(runs[-1]))
    return lambda: next(observed)


def replace_worker(
    runs: Sequence[RunState | None], state: EngineTask | None = None, failures: Iterator[int] | None = None
) -> None:
    """Replace worker-1 while the controller shows these runs; after a failure, its previous service is restored."""
    swarm = OneService(state, failures)
    desired, previous = task_service(task_props()), task_service(task_props(limits={"memory": 7}))
    try:
        replace_task(cast(Swarm, swarm), desired, previous, "worker-1", observations(*runs))
    except BackendError:
        assert swarm.applied == [desired, previous]
        raise
    assert swarm.applied == [desired]


def with_task(instance: str, **fields: Any) -> RunState:
    """The run, with these fields of worker-1."""
    run = RunState.from_dict(job().job.to_dict())
    vars(run.tasks["worker-1"]).update(fields, report=LauncherReport("worker-1", instance))
    return run


OLD: dict[str, Any] = {"instance": "old", "state": "running", "started": 5.0, "seen": 100.0}
FRESH = with_task(instance="new", state="running", started=100.0, seen=101.0)
STABLE = with_task(instance="new", state="running", started=100.0, seen=102.5)


@pytest.mark.parametrize(
    ("observed", "is_done"),
    [
        ([with_task(**OLD), None, with_task(**{**OLD, "instance": "new", "state": "waiting"}), FRESH, STABLE], True),
        *([[with_task(**{**OLD, "state": state})], True] for state in ("failed", "succeeded", "stopped")),
        ([with_task(**OLD)], False),
        ([with_task(**{**OLD, "instance": "new", "state": "restarting"})], False),
        ([FRESH], False),
        ([None], False),
    ],
)
def test_it_is_done_when_another_launcher_runs_the_task_for_a_while_or_this_run_starts_it_no_more(
    observed: list[RunState | None], is_done: bool
) -> None:
    rejected = EngineTask(False, "", "rejected", "No such image: gone:1")
    with nullcontext() if is_done else pytest.raises(BackendError, match=r"^worker-1 .*: No such image: gone:1$"):
        replace_worker([with_task(**OLD), *observed], None if is_done else rejected)


FAILED = {**OLD, "instance": "new", "state": "restarting", "end": Ended(3)}


@pytest.mark.parametrize(("planned", "is_done"), [("r1", False), ("c1", False), ("r2", True)])
def test_the_program_need_not_run_where_the_planned_run_is_another_one(
    monkeypatch: pytest.MonkeyPatch, planned: str, is_done: bool
) -> None:
    run = with_task(**FAILED)
    run.spec = replace(run.spec, id="r1", content_id="c1")
    before = with_task(**OLD)
    before.spec = run.spec
    monkeypatch.setattr(rolling_update, "GATHER_SECONDS", 0.0)
    swarm = OneService(EngineTask(True, "", "running"))
    runner = runner_of(swarm, SimpleNamespace(current_run=observations(before, before, run)))
    props = task_props(limits={"memory": 7}, run=planned)
    desired, former = task_service(props), task_service(task_props())
    with nullcontext() if is_done else pytest.raises(BackendError, match=r": its program ended with exit code 3$"):
        runner.update(props, desired, lambda: former, at_once=False)
    assert swarm.applied == ([desired] if is_done else [desired, former])


@pytest.mark.parametrize(
    ("state", "former", "is_at_once"),
    [
        ("pulling", None, True),
        ("", None, True),
        ("pulling", RunResult("succeeded", "", 0.0), True),
        ("pulling", "open", False),
        ("running", None, False),
    ],
)
def test_where_no_controller_can_report_a_task_is_updated_at_once(
    monkeypatch: pytest.MonkeyPatch, state: str, former: Any, is_at_once: bool
) -> None:
    """As after a wrong image that is corrected: its tasks and its controller have never run."""
    swarm = OneService(EngineTask(False, "", "rejected", "no such image"))
    tasks = {"controller": EngineTask(True, "", state)} if state else {}
    monkeypatch.setattr(swarm, "tasks", lambda: tasks, raising=False)
    runner = runner_of(swarm, SimpleNamespace(current_run=lambda: None))
    run = former and with_task(**OLD)
    if run is not None:
        run.result = None if former == "open" else former
    record = SimpleNamespace(current=lambda: run)
    monkeypatch.setattr(container_runner, "RecordCopy", lambda cluster: SimpleNamespace(record=record))
    monkeypatch.setattr(rolling_update, "GATHER_SECONDS", 0.0)
    desired, wrong = task_service(task_props()), task_service(task_props(limits={"memory": 7}))
    with nullcontext() if is_at_once else pytest.raises(BackendError, match="no such image"):
        runner.update(task_props(), desired, lambda: wrong, at_once=False)
    assert swarm.applied == [desired] + [wrong] * (not is_at_once)


def test_the_time_of_a_pull_does_not_count_and_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = itertools.count(step=0.15)
    clock = SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None)
    monkeypatch.setattr(rolling_update, "time", clock)
    monkeypatch.setattr(rolling_update, "_START_TIMEOUT", 2.0)
    monkeypatch.setattr(rolling_update, "_MAX_START_TIMEOUT", 3.0)
    replace_worker([*[with_task(**OLD)] * 50, STABLE], EngineTask(True, "", "pulling"))
    assert capsys.readouterr().out == "worker-1: the machine pulls the image\n"
    with pytest.raises(BackendError, match=r": starting$"):
        replace_worker([*[with_task(**OLD)] * 50, STABLE], EngineTask(True, "", "starting"))
    with pytest.raises(BackendError, match=r": not found$"):
        replace_worker([*[with_task(**OLD)] * 50, STABLE], EngineTask(True, "", "pulling", "not found"))
    assert capsys.readouterr().out == "worker-1: pulling: not found\n", "printed once"


def test_an_engine_that_is_busy_with_a_start_is_asked_at_most_twice_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(step=0.1)
    monkeypatch.setattr(rolling_update, "time", SimpleNamespace(monotonic=lambda: next(now)))
    answers = iter([0] * 200)
    wait_for_controller([*[STARTS] * 200, RUNS], answers)
    assert next(now) < 200 - len([*answers]) <= 2 * next(now)


def test_a_container_that_fails_several_times_is_not_waited_for() -> None:
    with pytest.raises(BackendError, match=r": will not start$"):
        replace_worker([with_task(**OLD)], EngineTask(True, "", "starting"), itertools.count(1))


@pytest.mark.parametrize("hostname", ["worker-1", "ps-0"])
@pytest.mark.parametrize("is_in_turn", [True, False])
def test_what_has_time_left_after_the_success_is_updated_when_it_has_ended(
    capsys: pytest.CaptureFixture[str], hostname: str, is_in_turn: bool
) -> None:
    """The other workers may end by themselves until `worker_timeout`, and the parameter servers serve them."""
    world = World(ps=1, workers=2, worker_timeout="90s")
    world.come()
    world.exit("worker-0")
    finishing = RunState.from_dict(world.job.to_dict())
    assert finishing.result
    assert finishing.tasks[hostname].state == "running"
    world.exit("worker-1")
    ended = RunState.from_dict(world.job.to_dict())
    swarm, observed = OneService(), list[bool]()

    def observe() -> RunState:
        assert not swarm.applied
        observed.append(True)
        return ended if len(observed) > 5 else finishing

    former = task_service(task_props(hostname=hostname))
    services = {hostname: {"Spec": {"Labels": former.labels}}}
    vars(swarm).update(services=lambda: services, engine=SimpleNamespace(host="", call=lambda request: []))
    old, new = task_props(hostname=hostname), task_props(hostname=hostname, limits={"memory": 7})
    if is_in_turn:
        replace_task(cast(Swarm, swarm), task_service(new), former, hostname, observe)
    else:
        runner_of(swarm, SimpleNamespace(current_run=observe)).update_task(old, new)
    assert (len(observed), len(swarm.applied)) == (6, 1)
    text = f"{hostname} gets its new settings when its program has ended, in at most 90 s"
    assert capsys.readouterr().out == f"{text}\n"


def test_a_launcher_that_does_not_respond_is_updated_at_the_end_of_its_time(clock: Clock) -> None:
    world = World(workers=2, worker_timeout="90s")
    world.come()
    world.exit("worker-0")
    swarm, begin = OneService(), clock.now
    desired = task_service(task_props())
    replace_task(cast(Swarm, swarm), desired, desired, "worker-1", lambda: world.job)
    assert (clock.now - begin, len(swarm.applied)) == (90.0, 1)


def wait_for_controller(states: Sequence[EngineTask | None], failures: Iterator[int] | None = None) -> None:
    """Wait while the engine reports these states, one after the other; the last one is repeated."""
    swarm, observed = OneService(None, failures), iter(states)
    clock = StartClock(cast(Swarm, swarm), "controller", "the controller")
    clock.begin(600.0, 600.0)

    def has_started() -> bool:
        swarm.state = next(observed, swarm.state)
        return swarm.state == RUNS

    wait_for_start(clock, has_started)


RUNS, STARTS, PULLS, UNBORN = (EngineTask(True, "", state) for state in ("running", "starting", "pulling", "scheduled"))


@pytest.mark.parametrize(
    ("states", "failures", "seconds"),
    [
        ([STARTS, STARTS._replace(reason="FailedCreate: exceeded quota")], 0, 60),
        ([PULLS] * 900 + [PULLS._replace(reason="ErrImagePull: not found")], 0, 960),
        ([UNBORN._replace(reason="0/2 nodes are available")], 0, 600),
        ([EngineTask(False, "", "rejected", "no such image")], 3, 3),
        ([UNBORN], 0, 600),
    ],
)
def test_why_the_controller_does_not_start_stands_for_a_minute(
    clock: Clock, states: list[EngineTask], failures: int, seconds: float
) -> None:
    begin = clock.now
    reason = states[-1].reason or "the engine reports no reason"
    with pytest.raises(NotStarted, match=f"^the controller did not start: {'will not start' if failures else reason}$"):
        wait_for_controller(states, (min(number, failures) for number in itertools.count()))
    assert clock.now - begin == pytest.approx(seconds, abs=2)


@pytest.mark.usefixtures("clock")
def test_a_reason_that_is_over_in_a_moment_ends_no_wait() -> None:
    wait_for_controller([*[STARTS._replace(reason="FailedMount: not yet")] * 55, *[STARTS] * 200, RUNS])
