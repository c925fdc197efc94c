"""Who may call what; what a stranger can make the controller do; how much a report costs."""

import http.client
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cases import plan
from tests.unit.simulation import Launcher
from tests.waiting import until
from tfdeploy.agent import connections, controller_server, events
from tfdeploy.agent.connections import Connections
from tfdeploy.agent.controller import END_SECONDS, Clock, Controller
from tfdeploy.agent.controller_server import Server
from tfdeploy.agent.log_segments import Stream
from tfdeploy.agent.record import Record
from tfdeploy.agent.rpc import TOKEN_HEADER, CallError, CallObsolete, Client, launcher_token, task_token
from tfdeploy.agent.run_state import RunState, TaskExit
from tfdeploy.agent.sync import END, NOTHING, PREPARE, RUN, STOP, ExitReport, LauncherReport, Order

TOKEN = "0123456789abcdef" * 2
"""As long as a real one."""


class Served:
    """A controller behind its server."""

    def __init__(self, folder: Path) -> None:
        (folder / "token").write_text(TOKEN + "\n")
        self.controller = Controller(Record(folder / "record"))
        self.server = Server("127.0.0.1:0", folder / "token", self.controller)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def client(self, token: str = TOKEN) -> Client:
        return Client(f"127.0.0.1:{self.port}", token, 10.0)

    def raw(self, head: str, body: bytes = b"") -> bytes:
        """What the server sends after these bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
            received = b""
            while part := connection.recv(4096):
                received += part
            return received


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


REPORT = Launcher("worker-0").report().to_dict()
RUN_ID = plan(workers=2).run.id
OF_A_TASK = [
    ("POST", "/sync", REPORT),
    ("GET", f"/log/{RUN_ID}/worker-0", {}),
    ("PUT", f"/log/{RUN_ID}/worker-0/stdout/0", {}),
]
UPLOADS = [
    ("PUT", f"/artifacts/{RUN_ID}/worker-0", {"artifacts": []}),
    ("PUT", f"/artifacts/{RUN_ID}/worker-0/0/0/{'0' * 64}", {}),
    ("POST", f"/artifacts/{RUN_ID}/worker-0/0", {"sha256": ""}),
    ("POST", f"/artifacts/{RUN_ID}/worker-0", {"left_out": []}),
]
LAUNCHERS_CALLS = [*OF_A_TASK, ("GET", f"/restore/{RUN_ID}", {}), ("GET", "/changes/0", {})]
ADMIN_CALLS = [
    ("PUT", "/run", {}),
    ("PUT", "/code/0123", {}),
    ("POST", "/stop", {}),
    ("POST", "/moved", {"to": "docker"}),
    ("PUT", "/import/0", {}),
    ("GET", "/import", {}),
    ("POST", "/view", {}),
    ("POST", "/copy", {"record_id": ""}),
    ("POST", "/restarts", {"hostnames": []}),
    ("POST", "/new-launcher", {"hostname": "worker-0", "action": "restarted"}),
    ("GET", "/stopped", {}),
]


def body_of(data: Any) -> bytes:
    return json.dumps(data).encode() if data is not None else b""


OWN, FORMER = task_token(TOKEN, "worker-0"), launcher_token(TOKEN)
"""The token of worker-0's launcher, and that of all launchers of version 0.1.0."""


@pytest.mark.parametrize("token", [OWN, FORMER])
@pytest.mark.parametrize(("method", "path", "data"), LAUNCHERS_CALLS)
def test_a_launcher_may_report_and_send_its_output(
    served: Served, token: str, method: str, path: str, data: Any
) -> None:
    served.controller.submit_run(plan(workers=2).run)
    with served.client(token) as client:
        client.call(method, path, body_of(data))


@pytest.mark.parametrize("token", [OWN, FORMER])
@pytest.mark.parametrize(("method", "path", "data"), ADMIN_CALLS)
def test_a_launcher_may_do_nothing_else(served: Served, token: str, method: str, path: str, data: Any) -> None:
    with served.client(token) as client, pytest.raises(CallError, match="403 the token of launchers"):
        client.call(method, path, body_of(data))


@pytest.mark.parametrize(("method", "path", "data"), [*OF_A_TASK, *UPLOADS])
def test_a_launcher_calls_for_no_other_task(served: Served, method: str, path: str, data: Any) -> None:
    served.controller.submit_run(plan(workers=2).run)
    before = record_of(served)
    with (
        served.client(task_token(TOKEN, "worker-1")) as client,
        pytest.raises(CallError, match="403 the token of worker-1 does not allow calls for worker-0"),
    ):
        client.call(method, path, body_of(data))
    assert record_of(served) == before


@pytest.mark.parametrize(("method", "path", "data"), [*OF_A_TASK, *UPLOADS])
def test_the_former_token_of_all_launchers_ends_with_the_first_call_of_a_task(
    served: Served, method: str, path: str, data: Any
) -> None:
    served.controller.submit_run(plan(workers=2).run)
    with served.client(OWN) as client, served.client(FORMER) as former:
        client.call("GET", "/changes/0")
        with pytest.raises(CallError, match="403 the token of launchers does not allow calls for worker-0"):
            former.call(method, path, body_of(data))
    with served.client(FORMER) as former:
        former.json("POST", "/sync", {**REPORT, "hostname": "worker-1"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/log/{}/worker-0"),
        ("PUT", "/log/{}/worker-0/stdout/0"),
        ("GET", "/restore/{}"),
        ("GET", "/restore/{}/checkpoint"),
        ("PUT", "/artifacts/{}/worker-0"),
        ("POST", "/artifacts/{}/worker-0"),
    ],
)
@pytest.mark.parametrize("run_id", ["another", "a.b", "..", "run_state.json", "", "%2e%2e"])
def test_a_launcher_makes_no_run(served: Served, method: str, path: str, run_id: str) -> None:
    served.controller.submit_run(plan(workers=2).run)
    before = record_of(served)
    with served.client(OWN) as client, pytest.raises(CallError, match=r" 4(00|04|10) "):
        client.call(method, path.format(run_id), body_of({"artifacts": [], "left_out": []}))
    assert record_of(served) == before


@pytest.mark.parametrize("hostname", ["worker-9", "run_state.json", "a.b", "..", "-x", "ps-0"])
def test_a_launcher_makes_no_task(served: Served, hostname: str) -> None:
    served.controller.submit_run(plan(workers=2).run)
    before = record_of(served)
    for token in (TOKEN, FORMER, task_token(TOKEN, hostname)):
        with served.client(token) as client:
            for method, end in (("GET", ""), ("PUT", "/stdout/0")):
                with pytest.raises(CallError, match=r" 4(04|10) "):
                    client.call(method, f"/log/{RUN_ID}/{hostname}{end}", b"")
    assert record_of(served) == before


def record_of(served: Served) -> list[str]:
    """The paths of all that the record has."""
    folder = served.controller._record.folder
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_call_for_an_unknown_run_is_repeated_until_the_controller_has_a_run(served: Served) -> None:
    path = f"/log/{RUN_ID}/worker-0"
    with served.client(OWN) as client, pytest.raises(CallError, match=" 409 ") as early:
        client.call("GET", path)
    assert not isinstance(early.value, CallObsolete)
    served.controller.submit_run(plan(workers=2, run_id="another").run)
    with served.client(OWN) as client, pytest.raises(CallObsolete, match=" 410 "):
        client.call("GET", path)


def test_what_a_removed_task_has_printed_last_is_taken(served: Served) -> None:
    served.controller.submit_run(plan(workers=2).run)
    served.controller.stop(["worker-1"])
    with served.client(task_token(TOKEN, "worker-1")) as client:
        client.call("PUT", f"/log/{RUN_ID}/worker-1/stdout/0", b"the last line\n")


def test_a_forged_report_does_not_fence_another_launcher(served: Served) -> None:
    served.controller.submit_run(plan(workers=2).run)
    with served.client(OWN) as client, served.client(task_token(TOKEN, "worker-1")) as other:
        client.json("POST", "/sync", REPORT)
        with pytest.raises(CallError, match="403"):
            other.json("POST", "/sync", {**REPORT, "instance": "forged", "generation": 99})
        assert client.json("POST", "/sync", {**REPORT, "generation": 1})["action"] == PREPARE


def test_gaps_delete_nothing_of_a_log(served: Served) -> None:
    served.controller.submit_run(plan(workers=2).run)
    path = f"/log/{RUN_ID}/worker-0/stdout"
    with served.client(OWN) as client:
        client.call("PUT", f"{path}/0", b"the only line\n")
        for number in range(1, 200):
            client.call("PUT", f"{path}/{number * 1_000_000}", b"x")
    stream = served.controller._record.log(RUN_ID, "worker-0").streams["stdout"]
    assert stream.span(0, 100) == b"the only line\n"
    with pytest.raises(ValueError, match="too many gaps"):
        put_gaps(stream, 1000)


def put_gaps(stream: Stream, count: int) -> None:
    for _ in range(count):
        stream.put(stream.end + 1_000_000, b"x")


def test_an_empty_token_file_is_no_token(served: Served, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    for token in ("", FORMER, OWN, launcher_token(""), task_token("", "worker-0")):
        with served.client(token) as client, pytest.raises(CallError, match="403 the cluster's token is missing"):
            client.call("GET", "/stopped")


@pytest.mark.parametrize("shown", ["", "\xe4\xf6", "{}x", "x{}", "{:.1}", "{:.16}", "{:.16}another", "{:.31}"])
@pytest.mark.parametrize("token", [TOKEN, launcher_token(TOKEN), task_token(TOKEN, "worker-0")])
def test_a_token_is_refused_unless_all_of_it_is_right(served: Served, token: str, shown: str) -> None:
    with (
        served.client(shown.format(token)) as client,
        pytest.raises(CallError, match="403 the cluster's token is missing or wrong"),
    ):
        client.call("GET", "/stopped")


def test_the_body_of_a_stranger_is_not_read(served: Served) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=5)) as connection:
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
        ("PUT /log/run/worker-0/stdout/0", 4),
        ("PUT /code/0", 512),
        ("PUT /import/0", 32),
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


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"\xff", b'{"hostname": []}'])
def test_a_body_that_is_no_report_is_an_error_of_the_caller(served: Served, body: bytes) -> None:
    with served.client() as client:
        with pytest.raises(CallError, match=r"/sync: 400"):
            client.call("POST", "/sync", body)
        client.json("POST", "/sync", REPORT)


def strangers(served: Served, count: int, sends: bytes = b"") -> list[socket.socket]:
    """Connections that show no token."""
    made = [socket.create_connection(("127.0.0.1", served.port), 5) for _ in range(count)]
    for connection in made:
        connection.sendall(sends)
    until(lambda: served.server.connections.strangers == count, "all are connected")
    return made


HEAD = b"POST /sync HTTP/1.1\r\nContent-Length: 9\r\nX-Another: "


@pytest.mark.parametrize("sends", [b"", b"P", HEAD, HEAD + b"x\r\n\r\n"])
def test_callers_without_a_token_keep_no_one_out(served: Served, monkeypatch: pytest.MonkeyPatch, sends: bytes) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 5)
    made = strangers(served, 5, sends)
    with served.client() as client, served.client(task_token(TOKEN, "worker-0")) as launcher:
        for _ in range(3):
            client.call("GET", "/stopped")
            launcher.json("POST", "/sync", REPORT)
        assert served.server.connections.strangers == 4
    made[0].settimeout(5)
    with suppress(ConnectionResetError):
        made[0].recv(1000)  # the response to a body that has not arrived, or nothing
    for connection in made:
        connection.close()
    until(lambda: served.server.connections.strangers == 0, "all are gone")


@pytest.mark.parametrize("sends", [b"", HEAD, HEAD + b"x\r\n\r\n"])
def test_a_caller_without_a_token_has_a_time_for_all_that_it_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: bytes
) -> None:
    monkeypatch.setattr(controller_server, "STRANGER_SECONDS", 0.5)
    served = Served(tmp_path)
    with closing(strangers(served, 1, sends)[0]) as connection:

        def is_closed() -> bool:
            """Whether the connection is closed, although a byte arrives again and again."""
            try:
                connection.sendall(b"x")
            except OSError:
                return True
            return False

        until(is_closed, "the connection is closed")
    served.server.shutdown()
    served.server.server_close()


def test_of_many_callers_without_a_token_the_oldest_of_the_most_crowded_address_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 3)
    pairs = {name: socket.socketpair() for name in ("user", "first", "second", "third")}
    places = Connections()
    for name, (end, _) in pairs.items():
        assert places.admit(end, ("10.0.0.1" if name == "user" else "10.0.0.2", 1))
    open_ = {name: not is_shut(other) for name, (_, other) in pairs.items()}
    assert open_ == {"user": True, "first": False, "second": True, "third": True}
    assert not places.welcome(pairs["first"][0], "worker-0", False)
    for pair in pairs.values():
        for end in pair:
            end.close()


def is_shut(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False


def test_a_task_cannot_take_the_places_of_others(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_OF_A_TASK", 2)
    own = [served.client(task_token(TOKEN, "worker-0")) for _ in range(3)]
    for client in own[:2]:
        client.json("POST", "/sync", REPORT)
    with pytest.raises(CallError, match="503 there are too many connections"):
        own[2].json("POST", "/sync", REPORT)
    with served.client() as user:
        user.call("GET", "/stopped")
    for client in own:
        client.close()


def test_a_full_disk_is_an_error_that_the_launcher_sees(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.controller, "put_log", _no_space)
    with served.client() as client, pytest.raises(CallError, match="507 the record cannot be written: No space"):
        client.call("PUT", "/log/run/worker-0/stdout/0", b"x")


def _no_space(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_a_code_archive_is_sent_without_a_copy_in_memory(served: Served) -> None:
    content = os.urandom(3_000_000)
    with served.client() as client:
        client.call("PUT", "/code/0123", content)
        assert client.call("GET", "/code/0123") == content
        with pytest.raises(CallError, match="404"):
            client.call("GET", "/code/4567")


def controller(folder: Path, **args: Any) -> Controller:
    made = Controller(Record(folder))
    made.submit_run(plan(**args).run)
    return made


def sync(target: Controller, launcher: Launcher) -> Order:
    order = target.sync(launcher.report())
    launcher.obey(order, 1.0)
    return order


def start(target: Controller, launchers: list[Launcher]) -> None:
    """Until all of their programs run."""
    for _ in range(8):
        for launcher in launchers:
            sync(target, launcher)
        target.tick()
    assert all(launcher.running for launcher in launchers)


def calls_of(target: Controller, reports: list[LauncherReport]) -> int:
    """How many functions these reports call."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        for report in reports:
            target.sync(report)
    finally:
        sys.setprofile(None)
    return count


def test_the_cost_of_a_report_does_not_depend_on_the_number_of_tasks(tmp_path: Path) -> None:
    costs = []
    for workers in (10, 100):
        target = controller(tmp_path / str(workers), workers=workers)
        launchers = [Launcher(f"worker-{index}", port=20_000 + index) for index in range(workers)]
        start(target, launchers)
        reports = [launcher.report() for launcher in launchers[:10]]
        costs.append(calls_of(target, reports))
    assert costs[1] <= 1.1 * costs[0], f"{costs} function calls for ten reports of 10 and of 100 tasks"


def test_registering_tasks_saves_the_state_for_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = controller(tmp_path, workers=1_000)
    saves: list[RunState] = []
    monkeypatch.setattr(Record, "save_other", lambda record, run: saves.append(run))
    monkeypatch.setattr(target, "_settle_at", float("inf"))
    for index in range(1_000):
        assert target.sync(Launcher(f"worker-{index}").report()).action == PREPARE
    assert not saves
    target.tick()
    assert len(saves) == 1


def test_no_program_is_started_or_ended_before_why_is_in_the_record(tmp_path: Path) -> None:
    target, launcher = controller(tmp_path, workers=1), Launcher("worker-0")
    for _ in range(4):
        sync(target, launcher)
        target.tick()
    assert launcher.running
    launcher.end_child(0, 1.0)
    target._settle_at = float("inf")
    assert sync(target, launcher).action == NOTHING
    target.tick()
    assert sync(target, launcher).action == END
    run = Record(tmp_path).current()
    assert run is not None
    assert run.tasks["worker-0"].state == "succeeded"


def test_a_controller_that_reports_the_end_may_be_killed(tmp_path: Path) -> None:
    target, launcher = controller(tmp_path, workers=1), Launcher("worker-0")
    start(target, [launcher])
    launcher.end_child(0, 1.0)
    target._settle_at = float("inf")
    target.sync(launcher.report())
    saved = Record(tmp_path).current()
    assert saved is not None
    assert saved.tasks["worker-0"].state == "running"
    assert target.is_stopped()
    saved = Record(tmp_path).current()
    assert saved is not None
    assert saved.tasks["worker-0"].state == "succeeded"


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
    with monkeypatch.context() as full:
        full.setattr("tfdeploy.agent.record.write_whole", _no_space)
        full.setattr("tfdeploy.agent.event_log._write", _no_space)
        for _ in range(4):
            sync(target, launcher)
            target.tick()
        assert launcher.attempt == 0
    for _ in range(4):
        sync(target, launcher)
        target.tick()
    assert launcher.attempt == 1
    run = Record(tmp_path).current()
    assert run is not None
    kinds = [event.kind for event in Record(tmp_path).events(run.spec.id)]
    assert {events.LAUNCHER_REGISTERED, events.RECORD_DELAYED, events.TASK_STARTED} <= {*kinds}


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as full:
        full.setattr("tfdeploy.agent.record.write_whole", _no_space)
        full.setattr("tfdeploy.agent.event_log._write", _no_space)
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
    other.instance = target._run.tasks["worker-1"].instance if target._run else ""
    target.sync(
        replace(other.report(), run_id=launcher.run, attempt=1, phase="exited", exit=ExitReport(TaskExit(1), 1.0))
    )


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
        assert sync(target, launchers[0]).action in (STOP, END)
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
        for _ in range(3):
            assert sync(target, launcher).action in (NOTHING, STOP)
            target.tick()
        assert target.unfinished() == {"waits_for": [], "problem": "No space left on device"}
    target.tick()
    assert sync(target, launcher).action == END
    assert target.unfinished() == {"waits_for": [], "problem": ""}


def test_artifacts_are_asked_for_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Controller(Record(tmp_path))
    target.submit_run(plan(workers=1, artifacts=["*.keras"]).run)
    launcher = Launcher("worker-0")
    for _ in range(8):
        target_sync = target.sync(replace(launcher.report(), can_upload=True))
        launcher.obey(target_sync, 1.0)
        target.tick()
    with full_disk(monkeypatch):
        launcher.end_child(0, 1.0)
        target.sync(replace(launcher.report(), can_upload=True))
        target.tick()
        order = target.sync(replace(launcher.report(), can_upload=True))
        assert (order.action, order.upload and order.upload.patterns) == (END, ["*.keras"])


@pytest.mark.parametrize("step", [3_600.0, -3_600.0])
def test_a_clock_that_is_set_delays_nothing(tmp_path: Path, step: float) -> None:
    wall, steady = 1_000_000.0, 50.0
    clock = Clock(lambda: wall, lambda: steady)
    target = Controller(Record(tmp_path), clock=clock)
    target.submit_run(plan(workers=1, restart={"maximum": 3, "backoff": "5s", "on": ["any"]}).run)
    launcher = Launcher("worker-0")
    for _ in range(4):
        wall, steady = wall + 1, steady + 1
        sync(target, launcher)
        target.tick()
    launcher.end_child(1, wall)
    sync(target, launcher)
    wall += step
    target.tick()
    wall, steady = wall + 6, steady + 6
    target.tick()
    assert sync(target, launcher).action == RUN


@pytest.mark.parametrize(("body", "all_end"), [({"auxiliary": False}, False), ({}, True)])
def test_a_stop_spares_tensorboard_on_request(served: Served, body: dict[str, bool], all_end: bool) -> None:
    served.controller.submit_run(plan(workers=1, tensorboard=True).run)
    with served.client() as client:
        client.call("POST", "/stop", body_of(body))
        assert client.json("GET", "/stopped") == {"stopped": all_end}


def test_a_machine_without_threads_refuses_for_a_moment_and_not_for_ever(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each such connection ends. If it was still counted, the server would refuse all others after some."""
    monkeypatch.setattr(connections, "MAX_STRANGERS", 3)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(5):
        with suppress(OSError):  # closed before all was sent
            assert served.raw("GET /stopped HTTP/1.1") == b""
    monkeypatch.setattr(threading.Thread, "start", start)
    with served.client() as client:
        assert client.json("GET", "/stopped") == {"stopped": True}
