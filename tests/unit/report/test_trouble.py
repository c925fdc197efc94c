"""What an update says, and whether it ends, when the cluster that it waits for cannot be observed any more."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report.test_diagnosis import ALL
from tests.unit.report.test_report import sight, world
from tfdeploy.agent.record.record import RecordView
from tfdeploy.backends.base import GONE, ObservedMachines, ObservedState
from tfdeploy.report.trouble import Trouble

HEAL = "pulumi up --refresh"


def observed(engine: Any = ALL, silent: float | None = 0.0, **more: Any) -> ObservedState:
    """A controller that is silent, and this engine."""
    return replace(sight(world(), silent_since=silent, engine=engine), **more)


CASES: dict[str, tuple[ObservedState, str, bool]] = {
    "all is well": (observed(silent=None), "", False),
    "supervisord is gone": (observed(engine=None), "The cluster's supervisord is gone", True),
    "the controller is dead": (observed(), "The controller does not respond", False),
    "the engine is gone": (
        observed(engine=None, problems=["connection refused"]),
        "The engine does not respond",
        False,
    ),
    "all services were removed": (observed(engine={}), "Nothing of the cluster exists any more", True),
    "the machines are gone": (
        observed(engine={}, machines=ObservedMachines(others=GONE)),
        "Nothing of the cluster exists any more",
        True,
    ),
    "folder and record are removed": (
        replace(observed(engine={}), view=RecordView(0.0, None)),
        "Nothing of the cluster exists any more",
        True,
    ),
    "one task is gone": (observed(engine={"worker-0": True}, silent=None), "", False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_when_it_lasts(case: str) -> None:
    seen, text, is_final = CASES[case]
    trouble = Trouble()
    for now in (100.0, 104.9):
        trouble.note(seen, HEAL, now)
        assert (trouble.text, trouble.is_final) == ("", False), "it may be over in a moment"
    trouble.note(seen, HEAL, 105.0)
    assert trouble.text.startswith(text)
    assert bool(trouble.text) == bool(text)
    assert trouble.is_final == is_final


def test_a_controller_that_is_started_again_is_no_trouble() -> None:
    trouble, gone = Trouble(), CASES["supervisord is gone"][0]
    for now, seen in enumerate([gone] * 5 + [observed(silent=None)] + [gone] * 5):
        trouble.note(seen, HEAL, float(now))
        assert not trouble.text
