"""What the end of a run means for an update, and for what depends on the cluster."""

import datetime
import time
from dataclasses import replace
from typing import Any

import pulumi
import pytest

from tests.unit.report.test_update_wait import finish, logged, sight, watch
from tests.unit.simulation import running
from tfdeploy.report import update_wait
from tfdeploy.report.update_wait import observed

__all__ = ["logged"]


@pytest.mark.parametrize(
    ("end", "args", "withheld"),
    [
        ("succeeded", {}, ""),
        ("failed", {}, ", because its run failed."),
        ("failed", {"wait": "0"}, ", because its run failed."),
        ("stopped", {"wait": "0"}, ", because its run was stopped."),
        ("", {"wait": "0.01s"}, ": its run is still running after `wait`."),
        ("", {"wait": "0"}, ""),
        ("", {"standalone_servers": True}, ""),
    ],
)
@pytest.mark.usefixtures("logged")
def test_it_is_withheld_unless_the_run_has_succeeded(
    monkeypatch: pytest.MonkeyPatch, end: str, args: dict[str, Any], withheld: str
) -> None:
    monkeypatch.setattr(update_wait, "fail_update", lambda *_: None)
    world = running(**{"workers": 1, **args})
    if end == "stopped":
        world.stop()
    elif end:
        world.exit("worker-0", code=int(end == "failed"))
    made, _ = watch([sight(world)], **{"workers": 1, **args})
    latest = finish(observed(made, "2026-11-21T12:00:00+00:00"))
    what = "mnist: what depends on this cluster was neither created nor updated"
    assert latest.withheld.startswith(f"{what}{withheld}" if withheld else "")
    assert bool(latest.withheld) == bool(withheld)
    assert finish(observed(made, None)).withheld == "", "under the mocks of a user's test"


@pytest.mark.parametrize("wait", ["10m", "0"])
def test_each_update_that_waits_fails_by_a_failed_run_of_any_update(monkeypatch: pytest.MonkeyPatch, wait: str) -> None:
    logged: list[tuple[str, str]] = []
    failed: list[str] = []
    for severity in ("info", "warn", "error"):
        monkeypatch.setattr(pulumi.log, severity, lambda text, *_, kind=severity, **__: logged.append((kind, text)))
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: False)
    monkeypatch.setattr(update_wait, "fail_update", lambda name, _: failed.append(name))
    world = running(workers=1)
    world.exit("worker-0", code=1)
    world.settle()
    first, _ = watch([sight(world)], workers=1, wait=wait)
    time.sleep(0.01)
    submitted_at = datetime.datetime.now(datetime.UTC).isoformat()
    time.sleep(0.01)
    second, _ = watch([sight(world)], workers=1, wait=wait)
    for update, is_same in ((first, False), (second, True)):
        assert finish(observed(update, submitted_at)).state == "failed"
        kind, text = logged.pop()
        assert kind == ("warn" if wait == "0" else "error")
        assert text.startswith("mnist: the run failed: worker-0 failed (exit 1); changed code, command,")
        assert "or another `run_id`, starts a new run." in text.splitlines()[0]
        assert ("This update has started no run." in text) == is_same
    assert failed == ([] if wait == "0" else ["mnist", "mnist"])


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_success_has_lost_is_said_once(logged: list[str], is_new: bool) -> None:
    world = running(workers=1)
    world.exit("worker-0", code=0)
    seen = sight(world)
    made, _ = watch([replace(seen, view=replace(seen.view, unprinted=["loss"]))], workers=1)
    submitted_at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1 if is_new else -1)
    finish(observed(made, submitted_at.isoformat()))
    said = [text for text in logged if "No line matches the pattern of loss" in text]
    assert len(said) == 1
    assert said[0].startswith("mnist: No line matches") == is_new
    assert any("Run succeeded" in text for text in logged)
