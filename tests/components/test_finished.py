"""Finished is finished: whatever is stood again afterwards trains nothing again."""

import shutil
from pathlib import Path

import pytest

from tests.components.conftest import Standing
from tests.waiting import until
from tfdeploy.backends.local.backend import BACKEND

TRAINS = """
import os, pathlib, sys
from steps import begin

begin()
folder = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
before = sorted(path.name for path in folder.iterdir())
(folder / os.environ["TFDEPLOY_HOSTNAME"]).touch()
print("found", before)
print("result:", os.environ.get("RESULT", sys.argv[1]))
"""
"""Leaves a file in its train_dir, and tells what it found there and what it was asked for."""

RESULT = {"result": r"result: (\S+)"}


def test_going_back_shows_the_earlier_run_and_trains_nothing(cluster: Standing) -> None:
    cluster.train(TRAINS, workers=1, metrics=RESULT)
    first = cluster.until_state("succeeded")
    cluster.train(TRAINS, workers=1, metrics=RESULT, arguments=("second",))
    cluster.until_started("worker-0", 2)
    second = cluster.until_state("succeeded")
    assert second.metrics == {"result": "second"}
    cluster.train(TRAINS, workers=1, metrics=RESULT)
    until(cluster.idle, "the launcher has ended")
    back = cluster.look()
    assert (back.run, back.state, back.metrics, back.logs) == (first.run, "succeeded", {"result": "first"}, first.logs)
    assert len(cluster.started("worker-0")) == 2


def test_a_train_dir_that_is_in_use_is_not_used_by_a_new_cluster(cluster: Standing) -> None:
    cluster.train(TRAINS, workers=1, train_dir="checkpoints")
    first = cluster.until_state("succeeded")
    cluster.clear()
    cluster.train(TRAINS, workers=1, train_dir="checkpoints")
    second = cluster.until_state("succeeded")
    assert second.run == first.run
    assert cluster.output("worker-0").startswith(b"found []\n")
    assert len(list((cluster.folder / "checkpoints").iterdir())) == 2
    cluster.train(TRAINS + "# more", workers=1, train_dir="checkpoints", resume_from=second.run)
    cluster.until_started("worker-0", 3)
    cluster.until_state("succeeded")
    assert cluster.job().spec.train_dir == str(cluster.folder / "checkpoints" / f"{second.run}-2")


@pytest.mark.parametrize("has_moved", [True, False])
def test_the_preview_names_the_folder_that_a_resumed_run_trains_in(cluster: Standing, has_moved: bool) -> None:
    cluster.train(TRAINS, workers=1, train_dir="checkpoints")
    first = cluster.until_state("succeeded")
    former = cluster.folder
    if has_moved:
        cluster.folder = former.rename(former.with_name("moved"))
        shutil.rmtree(cluster.folder / "checkpoints")
    cluster.declare(TRAINS, workers=1, train_dir="checkpoints" if has_moved else "others", resume_from=first.run)
    inventory = BACKEND.planner.inspect(cluster.cluster, cluster.spec, cluster.folder)
    rendered = BACKEND.planner.render(cluster.cluster, cluster.spec, cluster.plan, inventory)
    cluster.stand()
    cluster.until_started("worker-0", 1 if has_moved else 2)
    trained_in = Path(cluster.job().spec.train_dir)
    assert trained_in == cluster.folder / "checkpoints" / first.run
    assert str(trained_in.parent) in [one.place for one in rendered.retained]
    assert former.exists() != has_moved
