"""A session that waits for a peer which has ended or does not respond is named, with what to set."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report.test_report import NOON, sight
from tests.unit.simulation import World
from tfdeploy.agent.record.record import StoredLine
from tfdeploy.backends.base import ObservedState
from tfdeploy.report.session_waits import SessionWait, session_waits

LINE = (
    "2026-11-21 12:00:10.1: I tensorflow/core/a/master.cc:245] CreateSession still waiting for response from worker: "
)


def line(peer: str) -> str:
    job, index = peer.split("-")
    return f"{LINE}/job:{job}/replica:0/task:{index}"


def look(texts: list[str], waiting: str = "worker-1", ended: str = "worker-0", **args: Any) -> ObservedState:
    """A run in which one task has ended, and another has printed these lines."""
    made = World(**{"ps": 1, "workers": 2, "success": "all-workers", **args})
    made.begin_at(NOON)
    made.come()
    if ended:
        made.exit(ended)
    return sight(made, logs={waiting: [StoredLine(float(place), 2, text) for place, text in enumerate(texts)]})


def waits(*args: Any, **more: Any) -> list[SessionWait]:
    return session_waits(look(*args, **more))


def test_a_worker_that_waits_for_one_that_has_ended_is_named_with_what_to_set() -> None:
    (found,) = waits(["begin", line("worker-0")])
    assert (found.hostname, found.peer) == ("worker-1", "worker-0")
    assert found.text == "worker-1 waits for worker-0, which has ended (succeeded): its session has no device filters."
    assert 'device_filters=["/job:ps", "/job:worker/task:1"]' in found.remedy
    assert 'Or set `success="worker-0"`' in found.remedy


def test_for_the_worker_that_decides_there_is_only_the_program() -> None:
    (found,) = waits([line("worker-1")], waiting="worker-0", ended="worker-1", success="worker-0")
    assert 'device_filters=["/job:ps", "/job:worker/task:0"]' in found.remedy
    assert "success" not in found.remedy


@pytest.mark.parametrize(
    ("texts", "more"),
    [
        ([line("worker-0"), "step 1"], {}),
        ([], {}),
        (["step 1"], {}),
        ([line("ps-0")], {}),
        ([line("worker-9")] * 5, {}),
    ],
)
def test_a_worker_that_has_begun_or_waits_for_a_moment_is_not_named(texts: list[str], more: dict[str, Any]) -> None:
    assert waits(texts, **more) == []


def test_a_peer_that_runs_and_does_not_respond_for_long_is_named() -> None:
    (found,) = waits([line("chief-0")] * 3, ended="", chief=1)
    assert found.text == "worker-1 waits for chief-0, which is running and does not respond to its session."


def test_one_cycle_of_lines_for_each_of_many_peers_is_no_long_wait() -> None:
    peers = [line(f"worker-{index}") for index in (0, 2, 3)] + [line("ps-0")]
    assert waits(peers * 2, ended="", workers=4) == []
    (found,) = waits([*peers * 3, line("worker-2")], ended="", workers=4)
    assert found.peer == "worker-2"


def test_a_worker_that_does_not_exist_in_an_elastic_run_is_named() -> None:
    more: dict[str, Any] = {"elastic": {"max": 4}, "success": "worker-0"}
    (found,) = waits([line("worker-3")], waiting="worker-0", ended="", **more)
    assert (found.hostname, found.peer) == ("worker-0", "worker-3")
    assert found.text == "worker-0 waits for worker-3, which does not exist: its session has no device filters."
    assert 'device_filters=["/job:ps", "/job:worker/task:0"]' in found.remedy
    assert waits([line("worker-9")] * 5, waiting="worker-0", ended="", **more) == []


NOT_READY = "INFO:tensorflow:Waiting for model to be ready.  Ready_for_local_init_op:  Variables not initialized: v, ready: None"


@pytest.mark.parametrize(
    ("texts", "peer"),
    [
        (["begin", line("worker-0")], "worker-0"),
        ([line("ps-0"), line("worker-0"), "2026-11-21 12:00:12.1: I tensorflow/core/a.cc:1] noise"], "worker-0"),
        ([NOT_READY], ""),
        ([NOT_READY, line("ps-0")], "ps-0"),
        ([line("worker-0"), "step 0 loss 0.5"], None),
        (["step 12", line("worker-0")], None),
        ([NOT_READY, "the training begins"], None),
        ([], None),
        (["begin"], None),
    ],
)
@pytest.mark.parametrize("state", ["running", "stopped", "succeeded"])
def test_after_the_success_a_worker_that_never_trained_is_named(texts: list[str], peer: str | None, state: str) -> None:
    seen = look(texts, success="worker-0")
    assert seen.view.run_state is not None
    seen.view.run_state.tasks["worker-1"].state = state
    named = [(wait.hostname, wait.peer) for wait in session_waits(seen)]
    assert named == ([] if peer is None or state == "succeeded" else [("worker-1", peer)])


@pytest.mark.parametrize(
    ("own", "leader", "more", "is_quiet", "is_named"),
    [
        (["begin"], ["step 1"], {}, True, True),
        ([], ["step 1"], {}, True, True),
        (["step 1"], ["step 1"], {}, True, False),
        (["begin"], ["epoch"], {}, True, False),
        (["begin"], ["step 1"], {}, False, False),
        (["begin"] * 20, ["step 1"], {}, True, False),
        (["begin"], ["step 1"], {"chief": 1, "success": "chief", "worker_timeout": "1m"}, True, False),
    ],
)
def test_a_worker_without_a_step_that_did_nothing_is_named_where_worker_0_decides(
    own: list[str], leader: list[str], more: dict[str, Any], is_quiet: bool, is_named: bool
) -> None:
    args = {"success": "worker-0", **more}
    first = "chief-0" if "chief" in args else "worker-0"
    seen = look(own, ended=first, **args)
    assert seen.view.run_state is not None
    seen.view.run_state.tasks["worker-1"].is_quiet = is_quiet
    logs = {**seen.view.logs, first: [StoredLine(1.0, 1, text) for text in leader]}
    named = session_waits(replace(seen, view=replace(seen.view, logs=logs)))
    assert [wait.hostname for wait in named if wait.hostname == "worker-1"] == ["worker-1"] * is_named
    assert all("printed no step" in wait.text for wait in named)


def test_a_worker_that_waited_long_before_its_end_may_have_trained_since() -> None:
    for age, names in ((39.0, ["worker-1"]), (41.0, [])):
        seen = look([], success="worker-0")
        lines = [StoredLine(seen.view.at - age, 2, line("worker-0"))]
        assert seen.view.run_state is not None
        seen.view.run_state.submitted_at = 1.0
        waited = replace(seen, view=replace(seen.view, logs={"worker-1": lines}))
        assert [wait.hostname for wait in session_waits(waited)] == names


def test_gpu_workers_are_the_last_of_the_workers() -> None:
    (found,) = waits([line("worker-2")], ended="gpu-worker-0", gpu_workers=1)
    assert found.peer == "gpu-worker-0"
