"""The controller's search in the output: when metrics change, at the end, during a move, and with a pattern that takes long."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.test_until_metrics import decide, log, result_of, started
from tests.unit.cases import plan, stored_run
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model.sync import RUN
from tfdeploy.agent.record import pattern_process
from tfdeploy.agent.record.pattern_process import Matches
from tfdeploy.agent.record.record import Record, ViewRequest


def test_other_metrics_do_not_change_the_run_and_are_searched_from_the_first_line(tmp_path: Path) -> None:
    target, launchers, record = started(tmp_path, {})
    log(record, "worker-0", "step 7 auc: 0.8 accuracy: 0.9\n")
    before = target.view(ViewRequest())
    other = plan(workers=1, metrics={"auc": r"auc: (\S+)"}, until={"auc": ">= 0.7"}).run
    target.submit_run(other)
    after = target.view(ViewRequest())
    assert (before.metrics, after.metrics) == ({"accuracy": "0.9"}, {"auc": "0.8"})
    assert before.run_state is not None
    assert before.run_state.spec.id == other.id
    decide(target, launchers)
    result = result_of(record)
    assert result is not None
    assert [(metric.metric, metric.step) for metric in result.reached] == [("auc", 7)]


def test_values_of_the_former_pattern_of_a_metric_decide_nothing_while_another_search_goes_on(tmp_path: Path) -> None:
    target, launchers, record = started(tmp_path, {})
    log(record, "worker-0", "accuracy: 0.9 auc: 0.1\n")
    target.view(ViewRequest())
    target.submit_run(plan(workers=1, metrics={"accuracy": r"auc: (\S+)"}, until={"accuracy": ">= 0.5"}).run)
    run = target.snapshot()
    assert run is not None
    with target._search_lock:
        found = target.search(run, 0.01)
    assert (found.metrics, found.values, found.is_at_end) == ({}, {}, False)
    decide(target, launchers)
    assert result_of(record) is None
    assert target.search(run).metrics == {"accuracy": "0.1"}


def test_an_observation_from_before_the_metrics_changed_does_not_bring_former_patterns_back(tmp_path: Path) -> None:
    target, _, record = started(tmp_path, {})
    log(record, "worker-0", "accuracy: 0.9 auc: 0.1\n")
    before = target.snapshot()
    assert before is not None
    for metrics in ({"accuracy": r"auc: (\S+)"}, {}):
        target.submit_run(plan(workers=1, metrics=metrics).run)
        assert target.search(before).metrics == {}
        stored = json.loads((record.run_folder(before.spec.id) / "search.json").read_bytes())
        assert stored["patterns"] == metrics


def test_nothing_is_decided_in_a_run_that_is_not_submitted_here(tmp_path: Path) -> None:
    """Its record has arrived from another place."""
    target, launchers, record = started(tmp_path, {"accuracy": ">= 0.95"})
    log(record, "worker-0", "accuracy: 0.99\n")
    run = stored_run(record)
    run.has_arrived = True
    record.save_other(run)
    decide(Controller(Record(tmp_path)), launchers)
    assert result_of(record) is None
    decide(target, launchers)
    assert result_of(record) is not None


def test_a_slow_pattern_holds_neither_reports_nor_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, launchers, record = started(tmp_path, {"accuracy": ">= 0.95"})
    log(record, "worker-0", "accuracy: 0.5\n")
    decide(target, launchers)
    begun, end = threading.Event(), threading.Event()

    def search(*_: Any) -> Matches:
        begun.set()
        assert end.wait(30.0)
        return Matches({"accuracy": (0, "0.96")}, [])

    monkeypatch.setattr(pattern_process.SHARED, "search", search)
    log(record, "worker-0", "accuracy: 0.96\n")
    searching = threading.Thread(target=target.decide_until)
    searching.start()
    try:
        assert begun.wait(30.0)
        assert target.sync(launchers["worker-0"].report()).action == RUN
        run = target.snapshot()
        assert run is not None
        found = target.search(run, 0.01)
        assert (found.metrics, found.is_at_end) == ({"accuracy": "0.5"}, False)
    finally:
        end.set()
        searching.join()
    decide(target, launchers)
    assert result_of(record) is not None
