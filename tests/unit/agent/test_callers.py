"""Who may call what of the controller, and for which runs and tasks."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.served import REPORT, TOKEN, Served, body_of, served
from tests.unit.cases import plan
from tfdeploy.agent.launch.launcher import Launcher
from tfdeploy.agent.record.log_segments import Stream
from tfdeploy.agent.settings import TaskSettings
from tfdeploy.agent.sync import PREPARE
from tfdeploy.agent.transport.rpc import CallError, CallObsolete, task_token

__all__ = ["served"]

RUN_ID = plan(workers=2).run.id
OF_A_TASK = [
    ("POST", "/sync", REPORT),
    ("GET", f"/log/{RUN_ID}/worker-0", {}),
    ("PUT", f"/log/{RUN_ID}/worker-0/stdout/0", {}),
    ("PUT", "/dump/worker-0/1", {}),
]
UPLOADS: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", f"/artifacts/{RUN_ID}/worker-0", {"artifacts": []}),
    ("PUT", f"/artifacts/{RUN_ID}/worker-0/0/0/{'0' * 64}", {}),
    ("PUT", f"/artifacts/{RUN_ID}/worker-0/0/0/{'0' * 64}/{'0' * 64}", {}),
    ("POST", f"/artifacts/{RUN_ID}/worker-0", {"left_out": []}),
]
LAUNCHERS_CALLS = [*OF_A_TASK, ("GET", f"/restore/{RUN_ID}", {}), ("GET", "/changes/0", {})]
ADMIN_CALLS = [
    ("PUT", "/run", {}),
    ("PUT", "/code/0123", {}),
    ("POST", "/stop", {}),
    ("PUT", "/import", {"record_id": "", "at": 0, "files": {}}),
    ("GET", "/import", {}),
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
    for token in (TOKEN, task_token(TOKEN, hostname)):
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


def test_a_launcher_drops_what_it_has_of_a_run_that_was_deleted_and_of_no_other(served: Served, tmp_path: Path) -> None:
    (tmp_path / "own").write_text(OWN)
    Stream(tmp_path / "task/spool/deleted", "stdout").put(0, b"a line\n")
    settings = TaskSettings(
        "worker-0", "worker", 0, f"127.0.0.1:{served.port}", str(tmp_path / "own"), str(tmp_path / "task"), ""
    )
    launcher = Launcher(settings)
    assert not launcher._ship_leftovers()
    served.controller.submit_run(plan(workers=2).run)
    assert launcher._ship_leftovers()
    assert served.controller._record.runs() == [RUN_ID]


def test_what_a_removed_task_has_printed_last_is_taken(served: Served) -> None:
    served.controller.submit_run(plan(workers=2).run)
    served.controller.stop(["worker-1"])
    with served.client(task_token(TOKEN, "worker-1")) as client:
        client.call("PUT", f"/log/{RUN_ID}/worker-1/stdout/0", b"the last line\n")
    stream = served.controller._record.log(RUN_ID, "worker-1").streams["stdout"]
    assert stream.span(0, stream.end) == b"the last line\n"


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
    for token in ("", OWN, task_token("", "worker-0")):
        with served.client(token) as client, pytest.raises(CallError, match="403 the cluster's token is missing"):
            client.call("GET", "/stopped")


@pytest.mark.parametrize("shown", ["", "\xe4\xf6", "{}x", "x{}", "{:.1}", "{:.16}", "{:.16}another", "{:.31}"])
@pytest.mark.parametrize("token", [TOKEN, task_token(TOKEN, "worker-0")])
def test_a_token_is_refused_unless_all_of_it_is_right(served: Served, token: str, shown: str) -> None:
    with (
        served.client(shown.format(token)) as client,
        pytest.raises(CallError, match="403 the cluster's token is missing or wrong"),
    ):
        client.call("GET", "/stopped")
