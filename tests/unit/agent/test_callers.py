"""Who may call what of the controller, and for which runs and tasks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.served import REPORT, TOKEN, Served, body_of, served
from tests.unit.cases import no_space, plan
from tfdeploy.agent.launch import launcher as module
from tfdeploy.agent.launch.launcher import Launcher
from tfdeploy.agent.model.events import OUTPUT_APART, OUTPUT_LIMIT
from tfdeploy.agent.model.run_state import LauncherReport
from tfdeploy.agent.model.settings import TaskSettings
from tfdeploy.agent.record import output
from tfdeploy.agent.record.output import DIFFERS, Spool
from tfdeploy.agent.record.output_lines import STDOUT, Part, encode
from tfdeploy.agent.wire.rpc import CallError, CallObsolete, task_token

__all__ = ["served"]

RUN_ID = plan(workers=2).run.id
BEGIN = f"own/0/0/{'0' * 32}"
"""Of a task's output: the first piece, its first byte, and the launcher."""

LINE = encode(Part(1.0, STDOUT, 1, b"the last line", True))
OF_A_TASK = [
    ("POST", "/sync", REPORT),
    ("GET", f"/log/{RUN_ID}/worker-0", {}),
    ("PUT", f"/log/{RUN_ID}/worker-0/{BEGIN}", {}),
    ("PUT", "/dump/worker-0/1", {}),
]
UPLOADS: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", f"/artifacts/{RUN_ID}/worker-0", {"artifacts": [], "at_end": True}),
    ("PUT", f"/artifacts/{RUN_ID}/worker-0/{'0' * 32}-{'0' * 32}-1/0", {}),
    ("POST", f"/artifacts/{RUN_ID}/worker-0/whole", {"kind": "keras", "name": "k", "files": []}),
    ("POST", f"/artifacts/{RUN_ID}/worker-0", {"names": [], "left_out": [], "at_end": True}),
]
LAUNCHERS_CALLS = [*OF_A_TASK, ("GET", f"/restore/{RUN_ID}", {}), ("GET", "/changes/0", {})]
ADMIN_CALLS = [
    ("PUT", "/run", {}),
    ("PUT", "/code/0123", {}),
    ("POST", "/stop", {}),
    ("PUT", "/import", {"record_id": "", "at": 0, "files": {}}),
    ("POST", "/view", {}),
    ("POST", "/files", {"runs": [""]}),
    ("POST", "/restarts", {"hostnames": []}),
    ("POST", "/new-launcher", {"hostname": "worker-0", "action": "restarted"}),
    ("GET", "/stopped", {}),
    ("POST", "/dumps", {}),
    ("POST", "/dumps/arrived", {"number": 1, "known": []}),
]

OWN = task_token(TOKEN, "worker-0")
"""The token of worker-0's launcher."""


@pytest.mark.parametrize(("method", "path", "data"), LAUNCHERS_CALLS)
def test_a_launcher_may_report_and_send_its_output(served: Served, method: str, path: str, data: Any) -> None:
    served.controller.submit_run(plan(workers=2).run)
    with served.client(OWN) as client:
        client.call(method, path, body_of(data))


@pytest.mark.parametrize(("method", "path", "data"), ADMIN_CALLS)
def test_a_launcher_may_do_nothing_else(served: Served, method: str, path: str, data: Any) -> None:
    with served.client(OWN) as client, pytest.raises(CallError, match="403 the token of launchers"):
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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/log/{}/worker-0"),
        ("PUT", f"/log/{{}}/worker-0/{BEGIN}"),
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
    for token in (TOKEN, task_token(TOKEN, hostname)):
        with served.client(token) as client:
            for method, end in (("GET", ""), ("PUT", f"/{BEGIN}")):
                with pytest.raises(CallError, match=r" 4(04|10) "):
                    client.call(method, f"/log/{RUN_ID}/{hostname}{end}", b"")
    assert record_of(served) == before


def record_of(served: Served) -> list[str]:
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


def launcher_of(served: Served, folder: Path) -> Launcher:
    (folder / "own").write_text(OWN)
    address, token = f"127.0.0.1:{served.port}", str(folder / "own")
    return Launcher(TaskSettings("worker-0", "worker", 0, address, token, str(folder / "task"), ""))


def test_output_that_the_controller_did_not_take_in_time_is_sent_after_the_next_run_has_begun(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher, former, present = launcher_of(served, tmp_path), plan(workers=2).run, plan(workers=2, run_id="next").run
    monkeypatch.setattr(module, "_SHIP_SECONDS", 0.0)
    served.controller.submit_run(former)
    launcher._fetch(replace(former, code=""))
    assert launcher._spool is not None
    with monkeypatch.context() as patch:
        patch.setattr(served.controller, "put_log", no_space)
        launcher._spool.log.write(LINE)
        served.controller.submit_run(present)
        launcher._fetch(replace(present, code=""))
    assert served.controller.record.log(RUN_ID, "worker-0").printed(STDOUT) == b""
    assert launcher._ship_leftovers()
    assert served.controller.record.log(RUN_ID, "worker-0").printed(STDOUT) == b"the last line\n"
    launcher._close_spool()
    launcher._log_client.close()


def test_a_launcher_drops_what_it_has_of_a_run_that_was_deleted_and_of_no_other(served: Served, tmp_path: Path) -> None:
    Spool(tmp_path / "task/spool/deleted", {}).write(LINE)
    launcher = launcher_of(served, tmp_path)
    assert not launcher._ship_leftovers()
    served.controller.submit_run(plan(workers=2).run)
    assert launcher._ship_leftovers()
    assert served.controller._record.runs() == [RUN_ID]


def test_what_a_removed_task_has_printed_last_is_taken(served: Served) -> None:
    served.controller.submit_run(plan(workers=2).run)
    served.controller.stop(["worker-1"])
    with served.client(task_token(TOKEN, "worker-1")) as client:
        client.call("PUT", f"/log/{RUN_ID}/worker-1/{BEGIN}", LINE)
    assert served.controller._record.log(RUN_ID, "worker-1").printed(STDOUT) == b"the last line\n"


@pytest.mark.parametrize("shown", ["", "\xe4\xf6", "{}x", "x{}", "{:.1}", "{:.16}", "{:.16}another", "{:.31}"])
@pytest.mark.parametrize("token", [TOKEN, task_token(TOKEN, "worker-0")])
def test_a_token_is_refused_unless_all_of_it_is_right(served: Served, token: str, shown: str) -> None:
    with (
        served.client(shown.format(token)) as client,
        pytest.raises(CallError, match="403 the cluster's token is missing or wrong"),
    ):
        client.call("GET", "/stopped")


def test_output_of_a_launcher_that_was_replaced_is_stored_apart_and_is_an_event(served: Served) -> None:
    served.controller.submit_run(plan(workers=2).run)
    former, present = "a" * 32, "b" * 32
    served.controller.sync(LauncherReport("worker-0", former, created=1.0))
    served.controller.sync(LauncherReport("worker-0", present, created=2.0))
    with served.client(OWN) as client:
        client.call("PUT", f"/log/{RUN_ID}/worker-0/own/0/0/{present}", LINE)
        refused = json.loads(client.call("PUT", f"/log/{RUN_ID}/worker-0/own/0/{len(LINE)}/{former}", LINE))
        assert refused == {"end": DIFFERS}
        for at in (0, len(LINE)):
            client.call("PUT", f"/log/{RUN_ID}/worker-0/apart/0/{at}/{former}", LINE)
        assert json.loads(client.call("GET", f"/log/{RUN_ID}/worker-0"))["pieces"].keys() == {"0"}
        for number in range(7):
            client.call("PUT", f"/log/{RUN_ID}/worker-0/apart/0/0/{number}{former[1:]}", LINE)
        with pytest.raises(CallError, match="too many launchers"):
            client.call("PUT", f"/log/{RUN_ID}/worker-0/apart/0/0/{present}", LINE)
    record = served.controller.record
    assert record.log(RUN_ID, "worker-0").path(0).read_bytes() == LINE
    assert record.log(RUN_ID, "worker-0-aaaaaaaa").path(0).read_bytes() == 2 * LINE
    kinds = [event.kind for event in served.controller.record.events(RUN_ID)]
    assert kinds.count(OUTPUT_APART) == 8


def test_that_the_begin_of_output_is_deleted_is_an_event_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_PIECES", 1)
    served.controller.submit_run(plan(workers=2).run)
    with served.client(OWN) as client:
        for first in (0, 0, len(LINE), 2 * len(LINE)):
            client.call("PUT", f"/log/{RUN_ID}/worker-0/own/{first}/{first}/{'0' * 32}", LINE)
    kinds = [event.kind for event in served.controller.record.events(RUN_ID)]
    assert kinds.count(OUTPUT_LIMIT) == 1
