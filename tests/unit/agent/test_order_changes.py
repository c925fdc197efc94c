"""Launchers are notified of changes that concern all of them, and of nothing else; a controller that does not respond is left alone."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.unit.agent.served import Responses
from tests.unit.cases import plan, stored_run
from tests.unit.simulation import Launcher
from tests.waiting import until
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.wire import change_watch
from tfdeploy.agent.wire.change_watch import ChangeWatch
from tfdeploy.agent.wire.rpc import CallError, Client


def number_of(controller: Controller) -> int:
    return controller._changes.wait(0)


def report(controller: Controller, *launchers: Launcher) -> int:
    """Each reports, and obeys; the controller applies it. How many they are."""
    for launcher in launchers:
        launcher.obey(controller.sync(launcher.report()), 1.0)
        controller.tick()
    return len(launchers)


def after_ends(controller: Controller, *launchers: Launcher) -> list[int]:
    """The number of the last change after the end of each of these programs."""
    numbers = []
    for launcher in launchers:
        launcher.end_child(0, 2.0)
        report(controller, launcher)
        report(controller, launcher)
        numbers.append(number_of(controller))
    return numbers


def test_what_concerns_all_launchers_is_a_change_and_no_more(tmp_path: Path) -> None:
    controller = Controller(Record(tmp_path))
    launchers = [Launcher("worker-0"), Launcher("worker-1")]
    numbers = [number_of(controller)]

    def after(action: Callable[[], object]) -> bool:
        """Whether there is a change after this."""
        action()
        numbers.append(number_of(controller))
        return numbers[-1] != numbers[-2]

    run = plan(workers=2).run
    assert after(lambda: controller.submit_run(run))
    assert not after(lambda: report(controller, launchers[0])), "it prepares, and the other one has nothing to do"
    assert not after(lambda: report(controller, launchers[0]))
    assert after(lambda: [report(controller, launchers[1]) for _ in range(2)]), "all are ready"
    assert not after(lambda: [report(controller, *launchers) for _ in range(3)]), "the programs run"
    assert after(lambda: controller.stop([]))
    assert not after(lambda: [report(controller, *launchers) for _ in range(3)])
    assert after(lambda: controller.submit_run(plan(workers=2, command=["python", "other.py"]).run))


def test_the_end_of_the_last_worker_is_a_change_since_parameter_servers_serve_it(tmp_path: Path) -> None:
    controller = Controller(Record(tmp_path))
    launchers = [Launcher("ps-0"), Launcher("worker-0"), Launcher("worker-1"), Launcher("worker-2")]
    controller.submit_run(plan(ps=1, workers=3).run)
    for _ in range(4):
        report(controller, *launchers)
    numbers = after_ends(controller, *launchers[1:])
    assert numbers[1] == numbers[0], "worker-0 has ended the run, and worker-2 still runs"
    assert numbers[2] != numbers[1]


def test_the_end_of_the_evaluator_is_a_change_since_services_run_for_it(tmp_path: Path) -> None:
    controller = Controller(Record(tmp_path))
    launchers = [Launcher("chief-0"), Launcher("evaluator-0"), Launcher("store-0")]
    launchers[2].is_listening = True
    controller.submit_run(plan(chief=True, evaluator=True, services={"store": {"command": ["sleep", "inf"]}}).run)
    for _ in range(6):
        report(controller, *launchers)
    numbers = after_ends(controller, *launchers[:2])
    run = stored_run(controller.record)
    assert run.result
    assert run.result.state == "succeeded"
    assert numbers[1] != numbers[0]


def test_who_waits_gets_the_change_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    controller = Controller(Record(tmp_path))
    before = number_of(controller)
    waits = threading.Event()
    numbers: list[int] = []
    condition = controller._changes._condition
    wait = condition.wait

    def begin(timeout: float | None = None) -> bool:
        waits.set()
        return wait(timeout)

    monkeypatch.setattr(condition, "wait", begin)
    waiting = threading.Thread(target=lambda: numbers.append(controller._changes.wait(before, 600.0)))
    waiting.start()
    assert waits.wait(60)
    controller.submit_run(plan(workers=2).run)
    waiting.join(60)
    assert numbers
    assert numbers != [before]


def test_with_many_tasks_not_all_ask_at_once(tmp_path: Path) -> None:
    spread = {}
    for workers in (100, 1_000):
        controller = Controller(Record(tmp_path / str(workers)))
        controller.submit_run(plan(workers=workers).run)
        spread[workers] = controller.wait_for_change(0)["within"]
    assert spread[100] == 0
    assert 1 < spread[1_000] < 2


def test_the_watch_wakes_the_launcher_and_is_silent_while_nobody_responds() -> None:
    calls, woken = (
        Responses({"number": 7, "within": 0.0}, {"number": 7, "within": 0.0}, {"number": 8, "within": 0.0}),
        [],
    )
    watch = ChangeWatch(lambda: cast(Client, calls), lambda: woken.append(len(calls.made)))
    assert calls.made == [], "before the first contact"
    watch.note_contact()
    expected = ["GET /changes/0", "GET /changes/7", "GET /changes/7", "GET /changes/8"]
    until(lambda: calls.made == expected, "it calls until there is no response")
    assert woken == [1, 3]
    calls.responses = [{"number": 9, "within": 0.0}]
    watch.note_contact()
    until(lambda: woken == [1, 3, 5], "it calls again after the next contact")


def test_a_refusal_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a controller of an earlier version."""
    pauses, goes_on = [], threading.Event()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        goes_on.wait()

    monkeypatch.setattr(change_watch, "time", SimpleNamespace(sleep=sleep))
    calls = Responses(CallError("404 unknown call"))
    watch = ChangeWatch(lambda: cast(Client, calls), lambda: None)
    watch.note_contact()
    until(lambda: pauses, "it waits")
    assert (calls.made, pauses) == (["GET /changes/0"], [change_watch._REFUSED_SECONDS])
    goes_on.set()
