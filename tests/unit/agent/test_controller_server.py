"""What a stranger can make the controller do; how much a report costs; what a full disk delays."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.served import REPORT, TOKEN, Served, body_of, served
from tests.unit.cases import no_space, plan, stored_run
from tests.unit.simulation import Launcher
from tests.waiting import PATIENCE
from tfdeploy.agent.control.clock import Clock
from tfdeploy.agent.control.controller import END_SECONDS, STEADY_TICK_SECONDS, TICK_SECONDS, Controller
from tfdeploy.agent.model import events
from tfdeploy.agent.model.run_state import Ended, RunState
from tfdeploy.agent.model.sync import END, NOTHING, PREPARE, STOP, Order
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.wire import rpc
from tfdeploy.agent.wire.rpc import TOKEN_HEADER, CallError, task_token

__all__ = ["served"]


@pytest.mark.parametrize("content", ["", "\n", " \n ", None])
@pytest.mark.parametrize("shown", ["", None, TOKEN, task_token(TOKEN, "worker-0"), task_token("", "worker-0")])
def test_a_token_file_that_is_torn_lets_nobody_in(
    served: Served, tmp_path: Path, content: str | None, shown: str | None
) -> None:
    (tmp_path / "token").unlink()
    if content is not None:
        (tmp_path / "token").write_text(content)
    header = "" if shown is None else f"\n{TOKEN_HEADER}: {shown}"
    for path in ("/stopped", "/log/run/worker-0"):
        assert served.raw(f"GET {path} HTTP/1.1\nHost: x{header}").startswith(b"HTTP/1.1 403 ")


def test_a_response_has_a_limit(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "_MAX_RESPONSE", 10)
    with served.client() as client, pytest.raises(CallError, match=r"the response has \d+ bytes, and 10 are allowed"):
        client.call("GET", "/stopped")


def test_the_body_of_a_stranger_is_not_read(served: Served) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)) as connection:
        connection.putrequest("PUT", "/run")
        connection.putheader("Content-Length", str(300 * 1024 * 1024))
        connection.endheaders()
        connection.send(b"x" * 100_000)
        assert connection.getresponse().status == 403


@pytest.mark.parametrize(
    ("call", "mib"),
    [
        ("POST /sync", 4),
        ("PUT /run", 4),
        (f"PUT /log/run/worker-0/own/0/0/{'0' * 32}", 4),
        ("PUT /code/0", 512),
        ("PUT /import", 128),
    ],
)
def test_a_body_that_is_too_long_is_refused_unread(served: Served, call: str, mib: int) -> None:
    head = f"{call} HTTP/1.1\n{TOKEN_HEADER}: {TOKEN}\nContent-Length: {mib * 2**20 + 1}"
    assert b" 413 " in served.raw(head, b"x" * 70_000)


@pytest.mark.parametrize(
    "header",
    ["Content-Length: -1", "Content-Length: x", "Content-Length: 1\nContent-Length: 2", "Transfer-Encoding: chunked"],
)
def test_a_wrong_length_is_refused(served: Served, header: str) -> None:
    assert b" 400 " in served.raw(f"POST /sync HTTP/1.1\n{TOKEN_HEADER}: {TOKEN}\n{header}")


def test_a_body_that_was_cut_off_is_not_taken(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[bool] = []
    monkeypatch.setattr(served.controller, "stop", lambda *_: stops.append(True))
    for length, taken in ((3, []), (2, [True])):
        with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as connection:
            head = f"POST /stop HTTP/1.1\r\n{TOKEN_HEADER}: {TOKEN}\r\nContent-Length: {length}\r\n\r\n"
            connection.sendall(f"{head}{{}}".encode())
            connection.shutdown(socket.SHUT_WR)
            assert (b"the body is shorter than its Content-Length" in connection.recv(4096)) == (not taken)
        assert stops == taken


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"\xff", b'{"hostname": []}', b"[" * 100_000], ids=range(7))
def test_a_body_that_is_no_report_is_an_error_of_the_caller(served: Served, body: bytes) -> None:
    with served.client() as client:
        with pytest.raises(CallError, match=r"/sync: 400"):
            client.call("POST", "/sync", body)
        client.json("POST", "/sync", REPORT)


def test_a_report_whose_launcher_has_hung_up_is_ignored(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that was suspended finds reports that were sent long before."""
    server, caller, continued, done = served.server, served.server.caller, threading.Event(), threading.Event()
    seen: list[str] = []
    monkeypatch.setattr(server, "caller", lambda shown: caller(shown) if continued.wait(PATIENCE) else None)
    monkeypatch.setattr(server, "shutdown_request", lambda _: done.set())
    monkeypatch.setattr(served.controller, "sync_json", lambda report: seen.append(report.hostname))
    body = json.dumps(REPORT)
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as connection:
        head = f"POST /sync HTTP/1.1\r\n{TOKEN_HEADER}: {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(f"{head}{body}".encode())
    continued.set()
    assert done.wait(PATIENCE)
    assert seen == []
    with served.client() as client:
        client.json("POST", "/sync", REPORT)
    assert seen == ["worker-0"]


def controller(folder: Path, **args: Any) -> Controller:
    made = Controller(Record(folder))
    made.submit_run(plan(**args).run)
    return made


def sync(target: Controller, launcher: Launcher) -> Order:
    order = target.sync(launcher.report())
    launcher.obey(order, 1.0)
    return order


def prepare(target: Controller, launchers: list[Launcher]) -> None:
    """All are ready, and that is saved."""
    for _ in range(2):
        for launcher in launchers:
            sync(target, launcher)
        target.tick()


def start(target: Controller, launchers: list[Launcher]) -> None:
    """Until all of their programs run."""
    for _ in range(8):
        for launcher in launchers:
            sync(target, launcher)
        target.tick()
    assert all(launcher.running for launcher in launchers)


def test_registering_tasks_saves_the_state_for_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = controller(tmp_path, workers=1_000)
    saves: list[RunState] = []
    monkeypatch.setattr(Record, "save_other", lambda record, run: saves.append(run))
    monkeypatch.setattr(target, "_save_at", float("inf"))
    for index in range(1_000):
        assert target.sync(Launcher(f"worker-{index}").report()).action == PREPARE
    assert not saves
    target.tick()
    assert len(saves) == 1


def test_no_program_is_started_or_ended_before_why_is_in_the_record(tmp_path: Path) -> None:
    target, launcher = controller(tmp_path, workers=1), Launcher("worker-0")
    start(target, [launcher])
    launcher.end_child(0, 1.0)
    target._save_at = float("inf")
    assert sync(target, launcher).action == NOTHING
    target.tick()
    assert sync(target, launcher).action == END
    assert stored_run(Record(tmp_path)).tasks["worker-0"].state == "succeeded"


def test_no_order_waits_until_what_another_task_has_reported_is_saved(tmp_path: Path) -> None:
    target, launchers = controller(tmp_path, workers=2), [Launcher(f"worker-{index}") for index in range(2)]
    prepare(target, launchers)
    target._save_at = float("inf")
    books = []
    for launcher in launchers:
        books.append(sync(target, launcher).address_book)
        assert launcher.running
        target.sync(launcher.report())
    assert target.seconds_until_due() > 0
    assert books[0] is books[1], "it is made and encoded once"


@pytest.mark.parametrize("stops", [True, False])
def test_a_run_that_is_steady_is_looked_at_less_often(tmp_path: Path, stops: bool) -> None:
    target, launchers = controller(tmp_path, workers=2), [Launcher(f"worker-{index}") for index in range(2)]
    assert target.seconds_until_tick() == TICK_SECONDS
    start(target, launchers)
    assert target.seconds_until_tick() == STEADY_TICK_SECONDS
    if stops:
        target.stop([])
    else:
        launchers[0].end_child(1, 2.0)
        sync(target, launchers[0])
        target.tick()
    assert target.seconds_until_tick() == TICK_SECONDS, "it waits for its restart, or for the end"


def test_a_controller_that_reports_the_end_may_be_killed(tmp_path: Path) -> None:
    target, launcher = controller(tmp_path, workers=1), Launcher("worker-0")
    start(target, [launcher])
    launcher.end_child(0, 1.0)
    target._save_at = float("inf")
    target.sync(launcher.report())
    assert stored_run(Record(tmp_path)).tasks["worker-0"].state == "running"
    assert target.is_stopped()
    assert stored_run(Record(tmp_path)).tasks["worker-0"].state == "succeeded"


def test_many_tasks_report_less_often(tmp_path: Path) -> None:
    target, launchers = controller(tmp_path / "runs", workers=10), [Launcher(f"worker-{index}") for index in range(10)]
    start(target, launchers)
    run = target._run
    assert run is not None
    run.tasks["worker-0"].since -= 1_000
    polls = {}
    for workers in (10, 600):
        prepared = controller(tmp_path / str(workers), workers=workers)
        polls[workers] = [prepared.sync(Launcher("worker-0").report()).poll]
        run.tasks |= {f"worker-{index}": run.tasks["worker-0"] for index in range(10, workers)}
        polls[workers].append(target.sync(launchers[0].report()).poll)
    assert polls == {10: [0.2, 2.0], 600: [pytest.approx(0.8), pytest.approx(4.0)]}


def test_a_full_disk_delays_the_record_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, launcher = controller(tmp_path, workers=1), Launcher("worker-0")
    with full_disk(monkeypatch):
        for _ in range(4):
            sync(target, launcher)
            target.tick()
        assert launcher.attempt == 0
    start(target, [launcher])
    assert launcher.attempt == 1
    run = stored_run(Record(tmp_path))
    kinds = [event.kind for event in Record(tmp_path).events(run.spec.id)]
    assert {events.LAUNCHER_REGISTERED, events.RECORD_DELAYED, events.TASK_STARTED} <= {*kinds}


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as full:
        full.setattr("tfdeploy.agent.record.record.write_whole", no_space)
        full.setattr("tfdeploy.agent.record.event_log._write", no_space)
        yield


def stopped_by_user(target: Controller, launcher: Launcher) -> None:
    target.stop([])


def removed(target: Controller, launcher: Launcher) -> None:
    target.stop([launcher.hostname])


def over_its_budget(target: Controller, launcher: Launcher) -> None:
    assert target._run is not None
    target._run.spec = replace(target._run.spec, cost_per_hour=1e9, budget=0.01)


def at_its_time_limit(target: Controller, launcher: Launcher) -> None:
    target.stop([], auxiliary=False, time_limit=60.0)


def failed_elsewhere(target: Controller, launcher: Launcher) -> None:
    other = Launcher("worker-1")
    other.instance = target._run.tasks["worker-1"].report.instance if target._run else ""
    target.sync(replace(other.report(), run_id=launcher.run, attempt=1, phase="exited", exit=Ended(1, at=1.0)))


@pytest.mark.parametrize("end", [stopped_by_user, removed, over_its_budget, at_its_time_limit, failed_elsewhere])
def test_a_full_disk_delays_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[Controller, Launcher], None]
) -> None:
    wall, steady = 1_000_000.0, 50.0
    target = Controller(Record(tmp_path), clock=Clock(lambda: wall, lambda: steady))
    target.submit_run(plan(workers=2, restart={"maximum": 0}).run)
    launchers = [Launcher(f"worker-{index}", port=20_000 + index) for index in range(2)]
    start(target, launchers)
    with full_disk(monkeypatch):
        end(target, launchers[0])
        wall, steady = wall + 2, steady + 2
        target.tick()
        assert sync(target, launchers[0]).action == STOP
        assert not launchers[0].running
        wall, steady = wall + END_SECONDS, steady + END_SECONDS
        target.tick()
        assert sync(target, launchers[0]).action == END
        if end is not removed:
            for _ in range(2):
                sync(target, launchers[1])
            assert target.is_stopped()


def test_the_only_witness_of_an_end_remains_while_the_disk_is_full_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, launcher = controller(tmp_path, workers=1), Launcher("worker-0")
    start(target, [launcher])
    with full_disk(monkeypatch):
        launcher.end_child(0, 1.0)
        for action in (NOTHING, STOP, STOP):
            assert sync(target, launcher).action == action
            target.tick()
        assert target.unfinished() == {"waits_for": [], "problem": "No space left on device"}
    target.tick()
    assert sync(target, launcher).action == END
    assert target.unfinished() == {"waits_for": [], "problem": ""}


@pytest.mark.parametrize(("body", "all_end"), [({"auxiliary": False}, False), ({}, True)])
def test_a_stop_spares_tensorboard_on_request(served: Served, body: dict[str, bool], all_end: bool) -> None:
    served.controller.submit_run(plan(workers=1, tensorboard=True).run)
    with served.client() as client:
        client.call("POST", "/stop", body_of(body))
        assert client.json("GET", "/stopped") == {"stopped": all_end}
