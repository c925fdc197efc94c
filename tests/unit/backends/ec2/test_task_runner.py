"""One observation of a cluster on EC2: what it writes, and that a preview writes nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.backends.ec2.fleets import CLUSTER, instance
from tfdeploy.agent.record import ViewRequest
from tfdeploy.backends.ec2 import aws_api, record_bucket
from tfdeploy.backends.ec2.backend import BACKEND


@pytest.mark.parametrize("is_preview", [True, False])
def test_only_what_is_no_preview_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_preview: bool) -> None:
    asked: list[Any] = []
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(aws_api, "instances", lambda *_: [instance("mnist-ps-m0", state="stopped")])
    monkeypatch.setattr(record_bucket, "download", asked.append)
    state = BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)
    assert state.machines == {"mnist-ps-m0": "stopped"}
    monkeypatch.setattr(aws_api, "instances", lambda *_: [])
    monkeypatch.setattr(aws_api, "transition_reasons", lambda *_: {})
    BACKEND.runner.observe(CLUSTER, "", ViewRequest(), is_preview)
    assert (tmp_path / "state").exists() != is_preview
    assert asked == ([] if is_preview else [CLUSTER])
