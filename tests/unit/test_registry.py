"""Clusters are found by what was written down of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.cases import plan, spec
from tfdeploy import registry
from tfdeploy.backends.base import Cluster
from tfdeploy.outline import Outline, outline, outline_of

CLUSTER: Cluster = {"backend": "local", "project": "p", "stack": "dev", "name": "mnist", "home": "/nowhere"}


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def entry(begun: float = 1.0, name: str = "mnist") -> registry.Entry:
    shape = outline(plan(ps=1, workers=2), spec(ps=1, workers=2))
    return registry.Entry({**CLUSTER, "name": name}, "/folder", shape, {"workers": "2"}, {"python": "3"}, begun)


def test_what_is_written_is_read_the_newest_first() -> None:
    old, new = entry(1.0), entry(2.0, "other")
    registry.write(old)
    registry.write(new)
    assert registry.entries() == [new, old]
    assert old.title == "p/dev/mnist"


def test_only_the_user_can_read_it_and_a_torn_file_is_passed_over(tmp_path: Path) -> None:
    registry.write(entry())
    assert registry.folder().stat().st_mode & 0o77 == 0
    (registry.folder() / "torn.json").write_text('{"cluster": ')
    (registry.folder() / "strange.json").write_text("[]")
    assert len(registry.entries()) == 1


def test_a_destroyed_cluster_is_known_until_it_is_made_again() -> None:
    registry.write(entry())
    registry.end(CLUSTER)
    (found,) = registry.entries()
    assert found.ended > 0
    assert replace(found, ended=0.0) == entry()
    registry.write(entry(3.0))
    assert registry.entries()[0].ended == 0
    registry.end({**CLUSTER, "name": "unknown"})
    assert len(registry.entries()) == 1


def test_the_newest_record_that_was_put_by_is_found(tmp_path: Path) -> None:
    assert registry.kept(CLUSTER) is None
    for moment in ("20260102T000000Z", "20260101T000000Z"):
        (tmp_path / "tfdeploy/kept/p.dev.mnist" / moment / "record").mkdir(parents=True)
    found = registry.kept(CLUSTER)
    assert found is not None
    assert found.parent.name == "20260102T000000Z"


def test_an_outline_is_the_same_after_json_and_known_from_a_job_alone() -> None:
    shape = entry().outline
    assert Outline.from_dict(shape.to_dict()) == shape
    job = {
        "run": {"serve": False},
        "tasks": {"worker-0": {"hostname": "worker-0", "job": "worker", "index": 0, "machine": "lab"}},
    }
    found = outline_of(job)
    assert [task.hostname for task in found.tasks] == ["worker-0"]
    assert [machine.machine for machine in found.machines] == ["lab"]
    assert outline_of(None).tasks == ()
