"""The local task runner, without processes."""

from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import Record, RecordView, ViewRequest
from tfdeploy.backends import controller_calls
from tfdeploy.backends.base import EngineTask
from tfdeploy.backends.local.supervisor import Supervisor
from tfdeploy.backends.local.task_runner import LocalTaskRunner


def test_a_record_that_is_moved_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pulumi destroy` moves it."""
    cluster = cluster_ref("local", str(tmp_path / "home"))
    reads: list[Record] = []

    def current(record: Record) -> RunState | None:
        reads.append(record)
        if len(reads) == 1:
            raise FileNotFoundError
        return None

    monkeypatch.setattr(Record, "current", current)
    observed = LocalTaskRunner().observe(cluster, "", ViewRequest())
    assert (observed.view.run_state, observed.engine, len(reads)) == (None, {}, 2)


def test_a_launcher_that_exits_during_the_observation_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller's view has the task still running; the process ends right after it."""
    (tmp_path / "home").mkdir()
    state = "RUNNING"

    def programs(_: Supervisor) -> dict[str, dict[str, Any]]:
        return {"ps-0": {"statename": state, "pid": 7}}

    def view(*_: Any) -> RecordView:
        nonlocal state
        state = "EXITED"
        return Record(tmp_path / "record").view(ViewRequest(), None)

    monkeypatch.setattr(Supervisor, "programs", programs)
    monkeypatch.setattr(controller_calls, "view", view)
    observed = LocalTaskRunner().observe(cluster_ref("local", str(tmp_path / "home")), "a token", ViewRequest())
    assert observed.engine == {"ps-0": EngineTask(True, "7", "RUNNING")}
