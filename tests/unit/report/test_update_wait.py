"""Following a cluster until its verdict or the deadline; what its end means for an update, and for what depends on the cluster."""

import asyncio
import contextlib
import datetime
import itertools
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pulumi
import pytest

from tests.clusters import cluster_ref
from tests.unit.cases import plan, spec
from tests.unit.printing import progressed
from tests.unit.simulation import World, running
from tfdeploy.agent.model.run_state import FAILED, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN, RunState
from tfdeploy.agent.record.progress import Progress, Training
from tfdeploy.agent.record.record import RecordView, StoredLine
from tfdeploy.agent.system import polling
from tfdeploy.backends.backend import Backend
from tfdeploy.backends.base import GONE, ClusterRef, EngineTask, ObservedMachines, ObservedState
from tfdeploy.report import update_wait
from tfdeploy.report.report import END_SECONDS, Report
from tfdeploy.report.update_wait import Arrival, Watch, follow, observed


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the pauses would be: they end at once."""
    found: list[float] = []

    def pause_after(*arguments: float) -> float:
        found.append(polling.pause_after(*arguments))
        return 0.0

    monkeypatch.setattr(update_wait, "pause_after", pause_after)
    return found


class Looks:
    """A backend that can only be looked at, and shows these sights one after the other, the last one for ever."""

    def __init__(self, sights: Sequence[ObservedState]) -> None:
        self.sights = list(sights)
        self.count = 0
        self.runner = self
        self.restore_command = "pulumi up --refresh"

    def observe(self, cluster: ClusterRef, token: str, ask: Any, is_preview: bool = False) -> ObservedState:
        self.count += 1
        return self.sights[min(self.count, len(self.sights)) - 1]


def sight(world: World, *lines: tuple[float, str], hostname: str = "worker-0") -> ObservedState:
    logs = {hostname: [StoredLine(at, 1, text) for at, text in lines]}
    run, progress = RunState.from_dict(world.job.to_dict()), {hostname: progressed(*lines)}
    view = RecordView(world.now, run, logs, progress=progress)
    return ObservedState(world.now, view, None, None)


def watch(sights: Sequence[ObservedState], **args: Any) -> tuple[Watch, Looks]:
    looks = Looks(sights)
    return Watch(cast(Backend, looks), cluster_ref(), spec(**args), plan(**args)), looks


def followed(sights: Sequence[ObservedState], seconds: float = 60.0, **args: Any) -> tuple[Report, int]:
    """The last look, and how many there were."""
    made, looks = watch(sights, **args)
    return finish(follow(made, seconds)), looks.count


def finish(work: Coroutine[Any, Any, Report]) -> Report:
    """Its result, from a loop of its own: `asyncio.run` would leave the thread without one, and Pulumi's mocks need it."""
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        return loop.run_until_complete(work)


def updated(sights: Sequence[ObservedState], **args: Any) -> tuple[Report, int]:
    """The last look of an update that began this minute, and how many there were."""
    made, looks = watch(sights, **args)
    return finish(observed(made, "2026-11-21T12:00:00+00:00")), looks.count


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The updates that have failed, and why."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(update_wait, "fail_update", lambda *reason: found.append(reason))
    return found


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each look at the clock, a second more has passed."""
    clock = itertools.count()
    monkeypatch.setattr(update_wait, "time", SimpleNamespace(monotonic=lambda: float(next(clock)), time=time.time))


def test_it_looks_until_the_verdict_stands_and_nothing_runs() -> None:
    world = running(ps=1, workers=1)
    first = sight(world)
    world.launchers["worker-0"].end_child(0, world.now)
    world.sync("worker-0")
    second = sight(world)
    world.settle()
    seen, count = followed([first, second, sight(world)], ps=1, workers=1)
    assert (seen.state, count) == ("succeeded", 3)
    assert [row["status"] for row in seen.tasks] == ["stopped (run finished)", "succeeded"]


@pytest.mark.parametrize("status", ["lost", "unreachable since", "starting"])
def test_a_task_that_is_not_seen_at_the_moment_of_the_result_is_waited_for(status: str) -> None:
    """`up` looks in the moment after the run has ended, and before its parameter server has reported that it has stopped."""
    world = running(ps=1, workers=1)
    world.launchers["worker-0"].end_child(0, world.now)
    world.sync("worker-0")
    early = {
        "lost": replace(sight(world), engine={"ps-0": EngineTask(False, "1", "EXITED")}),
        "unreachable since": replace(sight(world), controller_silent_since=world.now),
        "starting": replace(sight(world), engine={"ps-0": EngineTask(True, "1", "starting")}, view=later(world, 5.0)),
    }[status]
    made, _ = watch([early], ps=1, workers=1)
    assert made.look().tasks[0]["status"].startswith(status)
    world.settle()
    seen, count = followed([early, early, sight(world)], ps=1, workers=1)
    assert ([row["status"] for row in seen.tasks], count) == (["stopped (run finished)", "succeeded"], 3)


@pytest.mark.parametrize("gone", [False, True])
def test_a_task_that_does_not_report_its_end_is_not_waited_for_long(gone: bool) -> None:
    world = running(ps=1, workers=1)
    world.lose("ps-0")
    world.exit("worker-0")
    early = replace(sight(world), engine={}, machines=ObservedMachines({"box": GONE} if gone else {}))
    late = replace(early, view=later(world, world.job.spec.grace + END_SECONDS))
    seen, count = followed([early, late], ps=1, workers=1)
    assert (seen.tasks[0]["status"], count) == ("lost", 1 if gone else 2)


def missed(world: World, seconds: float) -> ObservedState:
    """What is seen so much later when the controller misses one call: its state at that moment, from its record."""
    return replace(sight(world), view=later(world, seconds), controller_silent_since=world.now)


@pytest.mark.parametrize("seconds", [29.0, 31.0, 599.0, 640.0, 659.0])
def test_one_missed_call_of_the_controller_does_not_end_a_run_whose_workers_have_time_left(seconds: float) -> None:
    """In the window, and in the grace after it."""
    world = running(ps=1, workers=2, worker_timeout="10m", stop_grace_period="30s")
    world.exit("worker-0")
    early = missed(world, seconds)
    made, _ = watch([early], ps=1, workers=2)
    assert not made.look().finished
    world.exit("worker-1")
    seen, count = followed([early, sight(world)], ps=1, workers=2)
    assert (seen.finished, count) == (True, 2)


@pytest.mark.parametrize("seconds", [-31.0, 660.0])
def test_after_the_window_and_after_a_clock_that_was_set_back_a_silent_worker_is_not_waited_for(seconds: float) -> None:
    world = running(ps=1, workers=2, worker_timeout="10m", stop_grace_period="30s")
    world.exit("worker-0")
    made, _ = watch([missed(world, seconds)], ps=1, workers=2)
    assert made.look().finished


@pytest.mark.parametrize("end", ["the other worker ends", "the user stops it", "no other worker"])
def test_a_lost_task_is_not_waited_for_during_the_time_of_workers_when_none_is_left(end: str) -> None:
    args: dict[str, Any] = {"ps": 1, "workers": 1 if end == "no other worker" else 2, "worker_timeout": "10h"}
    world = running(**args)
    world.lose("ps-0")
    world.exit("worker-0")
    if end != "no other worker":
        world.wait(300.0)
    if end == "the other worker ends":
        world.exit("worker-1")
    elif end == "the user stops it":
        world.lose("worker-1")
        world.stop(auxiliary=False)
    lost, grace = replace(sight(world), engine={}), world.job.spec.grace
    assert not watch([replace(lost, view=later(world, grace + 29.0))], **args)[0].look().finished
    assert watch([replace(lost, view=later(world, grace + 31.0))], **args)[0].look().finished


def later(world: World, seconds: float) -> RecordView:
    return replace(sight(world).view, at=world.now + seconds)


def test_tasks_that_only_serve_are_waited_for_until_all_run() -> None:
    world = running(standalone_servers=True, ps=1, workers=1)
    last = sight(world)
    world.job.tasks["worker-0"].state = "starting"
    seen, count = followed([sight(world), last], standalone_servers=True, ps=1, workers=1)
    assert (seen.state, count) == ("running", 2)


@pytest.mark.parametrize("has_detached", [False, True])
def test_it_looks_once_when_there_is_no_time_to_wait_or_the_user_has_detached(has_detached: bool) -> None:
    made, looks = watch([sight(running(workers=1))], workers=1)
    if has_detached:
        made.detached.set()
    assert finish(follow(made, 60.0 if has_detached else 0.0)).state == "running"
    assert looks.count == 1


def test_rows_are_shown_until_the_last_look() -> None:
    world = running(workers=1)
    first = sight(world, (1.0, "hello"))
    world.exit("worker-0")
    made, _ = watch([first, sight(world)], workers=1)
    shown: list[tuple[str, str]] = []
    finish(follow(made, 60.0, lambda row, text: shown.append((row, text))))
    assert shown == [("worker-0", "running  hello"), ("cluster", "running"), ("run", "more: tfdeploy status --watch")]


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    for severity in ("info", "warn", "error"):
        monkeypatch.setattr(pulumi.log, severity, lambda text, *_, **__: texts.append(text))
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: False)
    return texts


def test_a_task_that_waits_for_a_peer_that_has_ended_is_named_once(logged: list[str]) -> None:
    world = running(workers=2, success="all-workers")
    world.exit("worker-0")
    text = "CreateSession still waiting for response from worker: /job:worker/replica:0/task:0"
    sights = [sight(world, (1.0, text), hostname="worker-1")] * 2
    world.exit("worker-1")
    followed([*sights, sight(world)], workers=2, success="all-workers")
    (line,) = logged
    assert line.startswith("mnist: worker-1 waits for worker-0 (succeeded)")


def test_the_end_of_the_wait_for_other_workers_is_said_once(logged: list[str]) -> None:
    world = running(workers=2)
    before = sight(world)
    world.exit("worker-0")
    sights = [before, sight(world), sight(world)]
    world.exit("worker-1")
    updated([*sights, sight(world)], workers=2)
    waits = [line for line in logged if "left to end by itself" in line]
    expected = "worker-1 has 1m left to end by itself (`worker_timeout`)."
    assert waits == [f"mnist: Run succeeded: worker-0 succeeded. {expected}"]


def test_an_update_waits_for_the_evaluator_and_names_it_once(logged: list[str]) -> None:
    world = running(workers=1, evaluator=1)
    before = sight(world)
    world.exit("worker-0")
    sights = [before, sight(world), sight(world)]
    made, _ = watch([missed(world, 599.0)], workers=1, evaluator=1)
    assert not made.look().finished
    world.exit("evaluator-0")
    updated([*sights, sight(world)], workers=1, evaluator=1)
    said = "Waiting for evaluator-0 to evaluate the last checkpoint, at most until "
    assert sum(said in line for line in logged) == 1


@pytest.mark.parametrize("was_well", [True, False])
@pytest.mark.usefixtures("seconds")
def test_an_update_of_a_lost_cluster_ends(logged: list[str], failed: list[tuple[str, str]], was_well: bool) -> None:
    """It fails if the cluster was there when it began to wait; a cluster that was gone before is what it reports."""
    world = running(workers=1)
    gone = replace(sight(world), controller_silent_since=world.now, engine=None)
    well = replace(sight(world), engine={"worker-0": EngineTask(True, "1", "")})
    _, count = updated([well, gone] if was_well else [gone], workers=1)
    assert count < 10
    if was_well:
        assert logged[-1].startswith("mnist: The cluster's supervisord is gone")
    else:
        assert logged[-1].endswith("`pulumi up --refresh` recreates what is missing.")
    assert [name for name, _ in failed] == ["mnist"] * was_well


@pytest.mark.usefixtures("seconds")
def test_an_update_says_at_once_that_the_controller_is_silent_and_waits_for_it(logged: list[str]) -> None:
    world = running(workers=1)
    silent = replace(sight(world), controller_silent_since=world.now, engine={"worker-0": EngineTask(True, "1", "")})
    world.exit("worker-0")
    seen, count = followed([silent] * 8 + [sight(world)], workers=1)
    assert (seen.state, count) == ("succeeded", 9)
    (line,) = logged
    assert line.startswith("mnist: The controller does not respond")


@pytest.mark.usefixtures("failed")
def test_the_error_of_an_update_has_the_cause_first_and_what_to_do(logged: list[str]) -> None:
    world = running(workers=1)
    world.exit("worker-0", code=2)
    lines = [(1.0, "usage: train.py"), (2.0, "train.py: error: unrecognized arguments: --job_name=worker")]
    updated([sight(world, *lines)], workers=1)
    report, error = logged
    cause = "train.py: error: unrecognized arguments: --job_name=worker\n"
    assert "worker-0   failed (exit 2)" in report
    assert cause.strip() not in report, "the cause is printed once"
    assert "the four flags" not in report
    assert f"Its last lines:\n  {cause}  usage: train.py\nThe program does not know the four flags" in error
    assert 'set `flags="never"`' in error


@pytest.mark.parametrize(("is_open", "wait"), [(True, "0"), (True, "600"), (False, "0")])
@pytest.mark.usefixtures("logged", "seconds")
def test_an_update_fails_while_something_is_missing_that_an_open_run_needs(
    failed: list[tuple[str, str]], is_open: bool, wait: str
) -> None:
    world = running(workers=2)
    if not is_open:
        world.exit("worker-0")
        world.settle()
    lacking = replace(sight(world), engine={"worker-0": EngineTask(True, "1", "")}, missing=["the Job mnist-worker-1"])
    latest, count = updated([lacking], workers=2, wait=wait)
    assert count <= 3, "it does not wait until the time is over"
    text = "The Job mnist-worker-1 is gone or cannot be used. `pulumi up --refresh` creates it again."
    assert [reason for _, reason in failed] == [f"mnist: {text}"] * is_open
    assert ("mnist-worker-1" in latest.status) is is_open


@pytest.mark.parametrize(
    ("end", "args", "withheld"),
    [
        ("succeeded", {}, ""),
        ("failed", {}, ", because its run failed."),
        ("failed", {"wait": "0"}, ", because its run failed."),
        ("stopped", {"wait": "0"}, ", because its run was stopped."),
        ("", {"wait": "0.01s"}, ": its run is still running after `wait`."),
        ("", {"wait": "0"}, ""),
        ("", {"standalone_servers": True}, ""),
    ],
)
@pytest.mark.usefixtures("logged", "failed")
def test_what_depends_on_it_is_withheld_unless_the_run_has_succeeded(
    end: str, args: dict[str, Any], withheld: str
) -> None:
    world = running(**{"workers": 1, **args})
    if end == "stopped":
        world.stop()
    elif end:
        world.exit("worker-0", code=int(end == "failed"))
    made, _ = watch([sight(world)], **{"workers": 1, **args})
    latest = finish(observed(made, "2026-11-21T12:00:00+00:00"))
    what = "mnist: what depends on this cluster was neither created nor updated"
    assert latest.withheld.startswith(f"{what}{withheld}" if withheld else "")
    assert bool(latest.withheld) == bool(withheld)
    assert finish(observed(made, None)).withheld == "", "under the mocks of a user's test"


@pytest.mark.parametrize("wait", ["10m", "0"])
def test_each_update_that_waits_fails_by_a_failed_run_of_any_update(
    logged: list[str], failed: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    monkeypatch.setattr(
        pulumi.log, "warn" if wait == "0" else "error", lambda text, *_, **__: logged.append(f"! {text}")
    )
    world = running(workers=1)
    world.exit("worker-0", code=1)
    world.settle()
    first, _ = watch([sight(world)], workers=1, wait=wait)
    time.sleep(0.01)
    submitted_at = datetime.datetime.now(datetime.UTC).isoformat()
    time.sleep(0.01)
    second, _ = watch([sight(world)], workers=1, wait=wait)
    for update, is_same in ((first, False), (second, True)):
        assert finish(observed(update, submitted_at)).state == "failed"
        text = logged.pop()
        assert text.startswith("! mnist: the run failed: worker-0 failed (exit 1); changed code, command,")
        assert "or another `run_id`, starts a new run." in text.splitlines()[0]
        assert ("This update has started no run." in text) == is_same
    assert [name for name, _ in failed] == ([] if wait == "0" else ["mnist", "mnist"])


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_success_has_lost_is_said_once(logged: list[str], is_new: bool) -> None:
    world = running(workers=1)
    world.exit("worker-0", code=0)
    seen = sight(world)
    made, _ = watch([replace(seen, view=replace(seen.view, unprinted=["loss"]))], workers=1)
    submitted_at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1 if is_new else -1)
    finish(observed(made, submitted_at.isoformat()))
    said = [text for text in logged if "No line matches the pattern of loss" in text]
    assert len(said) == 1
    assert said[0].startswith("mnist: No line matches") == is_new
    assert any("Run succeeded" in text for text in logged)


BEFORE, AFTER = (90.0, "step 4200: loss 0.3"), (110.0, "step 4201: loss 0.3")


def logging(state: str, *lines: tuple[float, str]) -> Report:
    empty: dict[str, Any] = dict.fromkeys(Report.__dataclass_fields__)
    return replace(Report(**empty), state=state, progress={"worker-0": progress(*lines)})


def progress(*lines: tuple[float, str]) -> Progress:
    """That of a task which has begun its second attempt at 100."""
    training = Training()
    progressed(*[line for line in lines if line[0] < 100.0], training=training)
    return progressed(*[line for line in lines if line[0] >= 100.0], attempt=2, training=training)


@pytest.mark.parametrize(
    ("state", "lines", "trains"),
    [
        (RUNNING, [BEFORE], False),
        (RUNNING, [BEFORE, AFTER], True),
        (RUNNING, [(110.0, "no step at all")], True),
        (RUNNING, [BEFORE, (110.0, "no step yet")], False),
        (RUNNING, [BEFORE, (110.0, "step 0: loss 2.3")], False),
        (RUNNING, [(90.0, "step 0: loss 2.3"), (110.0, "step 0: loss 2.3")], True),
        (RUNNING, [(110.0, "step 0: loss 2.3")], True),
        (STARTING, [BEFORE, AFTER], False),
        (SUCCEEDED, [BEFORE], True),
        (FAILED, [BEFORE, AFTER], False),
        (STOPPED, [BEFORE, AFTER], False),
        (UNKNOWN, [BEFORE, AFTER], False),
    ],
)
def test_a_step_after_the_submission_or_a_success(state: str, lines: list[tuple[float, str]], trains: bool) -> None:
    assert Arrival(100.0).trains(logging(state, *lines)) == trains


@pytest.mark.parametrize(
    ("checkpoints", "step", "trains"),
    [
        (["model.ckpt-4000"], 0, False),
        (["model.ckpt-4000"], 3999, False),
        (["model.ckpt-4000"], 4000, True),
        (["model.ckpt-4000", "eval/ckpt-5"], 100, False),
        (["ckpt-5000"], 1, True),
        (["ckpt-7"], 6, False),
        (["ckpt"], 1, True),
        ([], 1, True),
    ],
)
def test_a_counter_that_begins_again_shows_no_continuation(checkpoints: list[str], step: int, trains: bool) -> None:
    rows: list[Any] = [{"name": name, "kind": "checkpoint"} for name in checkpoints]
    arrival = Arrival(100.0)
    latest = replace(logging(RUNNING, BEFORE, (110.0, f"step {step}: loss 2.3")), artifacts=rows)
    assert arrival.trains(latest) == trains
    assert bool(arrival.problem) == (not trains)


def test_without_a_wait_it_is_enough_that_it_runs() -> None:
    assert Arrival(100.0).trains(logging(RUNNING, BEFORE), needs_step=False)
    assert not Arrival(100.0).trains(logging(STARTING, BEFORE), needs_step=False)


def test_a_program_that_printed_steps_once_is_expected_to_print_them_again() -> None:
    arrival = Arrival(100.0)
    assert not arrival.trains(logging(RUNNING, BEFORE))
    assert not arrival.trains(logging(RUNNING, (110.0, "another controller has searched no line of before")))


def test_the_first_step_at_the_new_place_stays_known() -> None:
    arrival, report = Arrival(100.0), logging(RUNNING, BEFORE, AFTER, (111.0, "step 4202: loss 0.3"))
    arrived = replace(report, progress={**report.progress, "worker-1": progress((109.0, "resumed at step 4,200"))})
    steps = []
    for latest in (logging(RUNNING, BEFORE), arrived, logging(RUNNING, AFTER, (200.0, "step 5000: loss 0.3"))):
        arrival.trains(latest)
        steps.append(arrival.step)
    assert steps == [None, 4200, 4200]
