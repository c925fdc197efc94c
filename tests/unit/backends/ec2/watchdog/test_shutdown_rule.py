"""When a machine ends, in tables: what is known of it, and what the watchdog does."""

from typing import Any

import pytest

from tfdeploy.backends.ec2.watchdog.shutdown_rule import (
    END,
    REST,
    SAVE,
    STOP,
    WAIT,
    Action,
    Limits,
    MachineFacts,
    decide,
)

HOUR = 3600.0
LIMITS = Limits(lifetime=72 * HOUR, idle=900.0, boot=1800.0)
NEVER = Limits(0.0, 0.0, 0.0)
BUSY = MachineFacts(
    age=HOUR,
    ready=True,
    quiet=3.0,
    had_task=True,
    tasks=2,
    is_manager=False,
    others=0,
    saved=False,
    due=0.0,
    saving=0.0,
    notice="",
    left=0.0,
)
OLD: dict[str, Any] = {"age": 72 * HOUR}
IDLE: dict[str, Any] = {"quiet": 900.0, "tasks": 0}
TAKEN: dict[str, Any] = {"notice": "spot instance is taken away", "left": 118.0}
MANAGES: dict[str, Any] = {"is_manager": True}


def does(limits: Limits = LIMITS, *of: dict[str, Any], **facts: Any) -> str:
    """What is done when these facts are added to those of a machine that is busy."""
    whole: dict[str, Any] = {}
    for some in (*of, facts):
        whole.update(some)
    return decide(limits, BUSY._replace(**whole)).do


@pytest.mark.parametrize(
    ("limits", "facts", "action"),
    [
        (LIMITS, {}, Action(REST)),
        (LIMITS, {"quiet": 899.0, "tasks": 0}, Action(REST)),
        (LIMITS, IDLE, Action(END, "idle for 900 s")),
        (LIMITS._replace(idle=0.0), {**IDLE, "quiet": 1e6}, Action(REST)),
        (LIMITS, {"age": 72 * HOUR - 1, "tasks": 0}, Action(REST)),
        (LIMITS, {**OLD, "tasks": 0}, Action(END, "max_lifetime of 259200 s is over")),
        (LIMITS._replace(lifetime=0.0), {"age": 1e9}, Action(REST)),
        (LIMITS, {"ready": False, "age": 1799.0}, Action(REST)),
        (LIMITS, {"ready": False, "age": 1800.0}, Action(END, "boot failed: not ready after 1800 s")),
        (LIMITS, {"ready": True, "age": 1800.0}, Action(REST)),
        (LIMITS, OLD, Action(STOP, "max_lifetime of 259200 s is over")),
        (LIMITS, {"quiet": 3599.0, "tasks": 0, "had_task": False}, Action(REST)),
        (LIMITS, {"quiet": 3600.0, "tasks": 0, "had_task": False}, Action(END, "idle for 3600 s")),
        (LIMITS, TAKEN, Action(STOP, "spot instance is taken away")),
        (NEVER, {**IDLE, "age": 1e9, "ready": False}, Action(REST)),
    ],
)
def test_one_machine(limits: Limits, facts: dict[str, Any], action: Action) -> None:
    assert decide(limits, BUSY._replace(**facts)) == action


@pytest.mark.parametrize(
    ("facts", "do"),
    [
        ({"others": 2}, WAIT),
        ({"others": 2, "due": 299.0}, WAIT),
        ({"others": 2, "due": 300.0}, SAVE),
        ({"others": 0}, SAVE),
        ({"others": 0, "saving": 1e4}, SAVE),
        ({"others": 0, "saving": 6 * HOUR}, END),
        ({"others": 0, "saved": True}, END),
    ],
)
def test_an_idle_manager_goes_last_and_never_without_the_record(facts: dict[str, Any], do: str) -> None:
    assert does(LIMITS, IDLE, MANAGES, facts) == do


@pytest.mark.parametrize(
    ("facts", "do"),
    [
        ({"tasks": 1}, STOP),
        ({"tasks": 1, "due": 120.0, "others": 1}, WAIT),
        ({"others": 1}, WAIT),
        ({"others": 1, "due": 300.0}, SAVE),
        ({}, SAVE),
        ({"saving": 119.0}, SAVE),
        ({"saving": 120.0}, END),
        ({"saved": True}, END),
    ],
)
def test_a_manager_whose_lifetime_is_over_tries_and_goes(facts: dict[str, Any], do: str) -> None:
    assert does(LIMITS, OLD, {"tasks": 0}, MANAGES, facts) == do


@pytest.mark.parametrize(
    ("facts", "do"),
    [
        ({"tasks": 2}, STOP),
        ({"tasks": 2, "left": 15.0}, END),
        ({"tasks": 0}, END),
        ({"tasks": 0, **MANAGES, "others": 3}, SAVE),
        ({"tasks": 0, **MANAGES, "saved": True}, END),
        ({"tasks": 0, **MANAGES, "left": 15.0}, END),
        ({"tasks": 1, "left": -1e9}, END),
    ],
)
def test_amazon_waits_for_nobody(facts: dict[str, Any], do: str) -> None:
    assert does(LIMITS, TAKEN, facts) == do
