"""What depends on a cluster is created after the success of its run."""

from typing import Any

import pytest

from tests.unit.report.test_update_wait import finish, logged, running, sight, watch
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
