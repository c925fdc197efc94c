"""What a cluster should have and does not: an update, `status` and `explain` name it."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.unit.report.test_diagnosis import ALL, silent, why
from tests.unit.report.test_update_wait import finish, logged, pauses, sight, watch
from tests.unit.simulation import running
from tfdeploy.backends.base import EngineTask
from tfdeploy.report import update_wait
from tfdeploy.report.update_wait import observed

__all__ = ["logged", "pauses"]


def test_what_is_missing_comes_before_what_follows_from_it() -> None:
    lacking = replace(silent(ALL), missing=["the Service mnist", "the Secret mnist-token"])
    first = why(lacking)[0]
    assert first.text == "The Service mnist, the Secret mnist-token are gone or cannot be used."
    assert first.remedy == "`pulumi up --refresh` creates them again."
    assert "does not respond" not in " ".join(finding.text for finding in why(lacking))


@pytest.mark.parametrize(("is_open", "wait"), [(True, "0"), (True, "600"), (False, "0")])
def test_an_update_fails_while_something_is_missing_that_an_open_run_needs(
    logged: list[str], monkeypatch: pytest.MonkeyPatch, is_open: bool, wait: str
) -> None:
    failed: list[str] = []
    monkeypatch.setattr(update_wait, "fail_update", lambda _, reason: failed.append(reason))
    clock = iter(range(15))  # it does not wait until the time is over
    monkeypatch.setattr(update_wait, "time", SimpleNamespace(monotonic=lambda: float(next(clock)), time=time.time))
    world = running(workers=2)
    if not is_open:
        world.exit("worker-0")
        world.settle()
    lacking = replace(sight(world), engine={"worker-0": EngineTask(True, "1", "")}, missing=["the Job mnist-worker-1"])
    latest = finish(observed(watch([lacking], workers=2, wait=wait)[0], "2026-11-21T12:00:00+00:00"))
    text = "The Job mnist-worker-1 is gone or cannot be used. `pulumi up --refresh` creates it again."
    assert failed == [f"mnist: {text}"] * is_open
    assert ("mnist-worker-1" in latest.status) is is_open
