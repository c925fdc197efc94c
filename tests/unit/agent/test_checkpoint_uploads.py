"""Which launcher uploads checkpoints while the run trains, and what the controller notes of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.uploading import NOW, SHA256, Cluster, spec, upload
from tfdeploy.agent.control import artifact_uploads
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.model import sync
from tfdeploy.agent.model.events import ARTIFACT_LEFT_OUT, ARTIFACTS_STORED
from tfdeploy.agent.model.run_spec import DEFAULT_PATTERNS
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.model.sync import Order
from tfdeploy.agent.record.record import Record, ViewRequest
from tfdeploy.agent.wire.rpc import CallObsolete

UPLOADS = sync.UploadRequest("run", "/train", list(DEFAULT_PATTERNS), 300.0)


@pytest.mark.parametrize(
    ("hostnames", "uploader"),
    [
        (("worker-0", "ps-0", "chief-0"), "chief-0"),
        (("ps-0", "worker-0", "worker-1"), "worker-0"),
        (("gpu-worker-0", "evaluator-0"), "gpu-worker-0"),
    ],
)
def test_while_a_run_trains_who_saves_checkpoints_uploads_them(hostnames: tuple[str, ...], uploader: str) -> None:
    cluster = Cluster(spec(*hostnames, checkpoint_upload_interval=300.0))
    assert {name: cluster.report(name).upload for name in hostnames} == dict.fromkeys(hostnames) | {uploader: UPLOADS}
    order = cluster.report(uploader)
    assert (order.action, order.address_book) == (sync.RUN, [])
    assert cluster.run.uploads == {}
    cluster.report(uploader, instance="another", phase=sync.IDLE, ready=False)
    assert not artifact_uploads.is_taken(cluster.run, uploader, True, cluster.now), "its program does not run"


@pytest.mark.parametrize(
    "changed",
    [{"train_dir": "s3://bucket/train"}, {"train_dir": ""}, {"artifacts": []}, {"checkpoint_upload_interval": 0.0}, {}],
)
def test_nothing_is_uploaded_from_urls_where_nothing_is_wanted_and_by_older_launchers(changed: dict[str, Any]) -> None:
    made = spec("worker-0", **{"checkpoint_upload_interval": 300.0, **changed})
    cluster = Cluster(made, can_upload=bool(changed))
    assert cluster.report("worker-0").upload is None, "while it trains"
    if "checkpoint_upload_interval" not in changed:
        assert cluster.end("worker-0") == Order(sync.END, generation=1)
        assert cluster.run.uploads == {}


def test_the_events_of_uploads_while_a_run_trains_do_not_grow_with_them(tmp_path: Path) -> None:
    cluster = Cluster(spec("worker-0", "worker-1", checkpoint_upload_interval=300.0))
    record = Record(tmp_path)
    record.save(cluster.run)
    controller = Controller(record)
    for step in (1, 2):
        files = [{"name": name, "size": 1, "version": str(step)} for name in (f"c-{step}.index", "checkpoint")]
        item = {"kind": "checkpoint", "name": f"c-{step}", "files": files}
        upload(controller, False, item, left_out=({"name": f"d-{step}", "size": 1, "reason": "limit"},))
        assert [item.name for item in controller.view(ViewRequest()).artifacts] == [f"c-{step}"]
    assert [(event.kind, event.artifacts) for event in record.events("run") if event.artifacts] == [
        (ARTIFACT_LEFT_OUT, ["d-1"]),
        (ARTIFACTS_STORED, ["c-1"]),
    ]
    many = tuple({"name": f"{number}", "size": 1, "reason": "limit"} for number in range(100))
    upload(controller, True, left_out=many)
    assert sum(event.kind == ARTIFACT_LEFT_OUT for event in record.events("run")) == 1 + 20
    with pytest.raises(CallObsolete):
        controller.uploads.begin("run", "worker-1", {"artifacts": [], "at_end": False})
    assert controller.restorable("run")["files"] == [
        {"path": name, "size": 1, "sha256": SHA256} for name in ("c-2.index", "checkpoint")
    ]
    record.save(RunState(replace(cluster.run.spec, id="next", resume_from="run"), NOW))
    own = controller.restorable("run")
    assert own["is_own"] is True
    assert Controller(record).restorable("next") == {**own, "is_own": False}, "until it has artifacts of its own"
