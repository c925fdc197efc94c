"""Events become sentences: each kind has one, and waiting is derived."""

import pytest

from tfdeploy.agent.model import events
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import STARTUP_TIMEOUT, SUCCEEDED, UNTIL, Ended, ReachedMetric, RunResult
from tfdeploy.report.events import describe, document, result_text, sentence, with_waits

RESULT = RunResult("failed", STARTUP_TIMEOUT, 1.0, ["ps-0"], Ended(3))
EXIT = {"code": 3, "signal": "", "out_of_memory": False}
KINDS = [value for name, value in vars(events).items() if name.isupper()]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_sentence(kind: str) -> None:
    event = Event(kind, 1.0, "worker-0", state="pulling", result=RESULT, exit=Ended(3))
    assert describe(event)[0]
    assert document(event)["sentence"] == sentence(event)
    assert document(event)["exit"] == document(event)["result"]["exit"] == EXIT
    assert Event.from_dict(event.to_dict()) == event


def test_a_value_differs_from_the_threshold_that_it_passed() -> None:
    metric = ReachedMetric("accuracy", 0.95000001, ">", 0.95, "worker-0", 1, 4200)
    text = result_text(RunResult(SUCCEEDED, UNTIL, 1.0, ["worker-0"], reached=[metric]))
    assert text == "accuracy 0.95000001 reached > 0.95 at step 4,200"


def test_the_data_of_an_event_is_in_its_document() -> None:
    event = Event(events.TASK_RESTARTING, 1.0, "worker-0", 2, exit=Ended(3), delay=8.0, failures=2, max_failures=3)
    assert document(event) == {
        "at": 1.0,
        "kind": "task_restarting",
        "task": "worker-0",
        "attempt": 2,
        "reason": "",
        "exit": EXIT,
        "delay": 8.0,
        "failures": 2,
        "max_failures": 3,
        "sentence": "worker-0 exit 3: restarting in 8 s (2 of 3)",
    }


def test_who_came_earlier_has_waited_for_the_last() -> None:
    came = [Event(events.LAUNCHER_REGISTERED, at, name) for at, name in enumerate(("ps-0", "worker-0", "ps-1"))]
    ready = Event(events.BARRIER_PASSED, 3.0, tasks=["ps-0", "ps-1", "worker-0"])
    waits = [(event.task, event.tasks, event.delay) for event in with_waits([*came, ready])[3:]]
    assert waits == [("ps-0", ["ps-1"], 3.0), ("worker-0", ["ps-1"], 2.0), ("", ready.tasks, 0.0)]
