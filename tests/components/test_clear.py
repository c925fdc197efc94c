"""Clearing leaves no process, no socket, no lock, no folder; record and checkpoints are kept, and it is said where."""

import tempfile
from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.processes import alive
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.backends.local.supervisor import marked

CHECKPOINTS = """
import os, pathlib
from steps import begin, wait_for

pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], "checkpoint").write_text("weights")
begin()
wait_for("gate")
"""

DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS


def left(cluster: Standing) -> list[object]:
    """What is still there of a cluster."""
    places = cluster.places
    return [*marked(places.home), *(path for path in (places.home, places.lock) if path.exists())]


def test_nothing_is_left_of_a_cluster_that_runs(
    cluster: Standing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is cleared from a shell with another temporary folder."""
    cluster.run(CHECKPOINTS, ps=1, workers=2)
    assert [*cluster.places.home.glob("*.sock")] != []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert cluster.look().state == "running"
    said = cluster.clear()
    assert left(cluster) == []
    kept = cluster.kept(said)
    assert sorted(path.name for path in kept.iterdir()) == ["record", "train"]
    assert [path.read_text() for path in kept.rglob("checkpoint")] == ["weights"]
    assert cluster.clear() == "", "a second time is as good as once"


@pytest.mark.parametrize("train_dir", ["", "models"])
def test_each_update_lists_what_destroy_will_keep_and_where(train_dir: str, cluster: Standing) -> None:
    cluster.up(CHECKPOINTS, workers=1, **({"train_dir": train_dir} if train_dir else {}))
    run = cluster.finish().run
    inventory = BACKEND.planner.inspect(cluster.cluster, cluster.spec, cluster.folder)
    record, checkpoints = BACKEND.planner.render(cluster.cluster, cluster.spec, cluster.plan, inventory).retained
    assert (record.kind, checkpoints.kind) == ("record", "checkpoints")
    assert all(data.is_retained and data.size for data in (record, checkpoints))
    kept = cluster.kept(cluster.clear())
    assert (kept / "record").is_relative_to(record.place)
    checkpoint = next((kept / "train" if not train_dir else cluster.folder / train_dir).rglob("checkpoint"))
    assert checkpoint.is_relative_to(checkpoints.place)
    assert checkpoint.read_text() == "weights"
    assert sorted(path.name for path in kept.iterdir()) == (["record"] if train_dir else ["record", "train"])
    assert not train_dir or checkpoint == cluster.folder / "models" / run / "checkpoint", "the user's own is left alone"


@pytest.mark.parametrize("dead", ["supervisord", "controller"])
def test_what_was_killed_before_is_cleared_too(cluster: Standing, dead: str) -> None:
    cluster.up(WAITS, ps=1, workers=1)
    pids = [cluster.until_started(hostname) for hostname in ("ps-0", "worker-0")]
    cluster.kill(dead)
    assert cluster.clear()
    assert left(cluster) == []
    assert not any(map(alive, pids))


def test_a_task_that_heeds_no_signal_is_cleared_after_its_grace(cluster: Standing) -> None:
    cluster.run(DEAF, workers=1, stop_grace_period="1s")
    cluster.clear()
    assert left(cluster) == []
