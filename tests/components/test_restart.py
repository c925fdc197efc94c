"""A task that starts again by the user's word: what is lost, what stays, and what the others notice of it."""

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.registered import verbs_of
from tests.waiting import until
from tfdeploy.agent.model.events import REPLACE_REQUESTED, RESTART_REQUESTED
from tfdeploy.backends.backend import access
from tfdeploy.errors import BackendError, NotFound

KEEPS = """
import os, pathlib, sys
from steps import begin, hostname, wait_for

places = [pathlib.Path(), pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])]
for place in places:
    with (place / ("lives-" + hostname)).open("a") as lives:
        lives.write("x")
print(*[len((place / ("lives-" + hostname)).read_text()) for place in places], *sys.argv[1:], flush=True)
begin()
wait_for("gate", hostname)
"""
"""Tells how often it has lived here, and where checkpoints are."""

HANDS = access("local")


def test_a_task_starts_again_in_a_new_folder_and_the_others_go_on(cluster: Standing) -> None:
    cluster.run(KEEPS, ps=1, workers=2)
    before = cluster.job()
    for life, replace in ((2, False), (3, True)):
        HANDS.restart(cluster.cluster, "worker-1", replace)
        assert cluster.status("worker-1") == "running"
        cluster.until_running("worker-1", times=life)
        assert (REPLACE_REQUESTED if replace else RESTART_REQUESTED, "worker-1") in cluster.happened()
    until(lambda: cluster.output("worker-1").count(b"\n") == 3, "all lives have told")
    after = cluster.job()
    assert after.address_book == before.address_book, "with the same address book"
    assert {name: task.failures for name, task in after.tasks.items()} == {"ps-0": 0, "worker-0": 0, "worker-1": 0}
    assert [len(cluster.started(name)) for name in ("ps-0", "worker-0", "worker-1")] == [1, 1, 3]
    lives = [line.split() for line in cluster.output("worker-1").decode().splitlines()]
    assert [line[:2] for line in lives] == [["1", "1"], ["1", "2"], ["1", "3"]]
    assert lives[0][2:] == lives[1][2:] == lives[2][2:], "with the same flags"
    assert cluster.finish().tasks[2]["status"] == "succeeded"


def test_finished_is_finished(cluster: Standing) -> None:
    cluster.run(WAITS, workers=2, success="all-workers")
    cluster.open("worker-0")
    cluster.until_status("worker-0", "succeeded")
    for replace in (False, True):
        with pytest.raises(
            BackendError, match=r"worker-0 has ended \(succeeded\), and a finished task is not restarted"
        ):
            HANDS.restart(cluster.cluster, "worker-0", replace)
    with pytest.raises(NotFound, match=r"test has no task 'worker-7'; it has worker-0, worker-1"):
        HANDS.restart(cluster.cluster, "worker-7")
    HANDS.restart(cluster.cluster, "worker-1")
    cluster.finish()
    assert [len(cluster.started(name)) for name in ("worker-0", "worker-1")] == [1, 2]


def test_the_command_says_what_it_does_and_asks(cluster: Standing) -> None:
    cluster.run(KEEPS, workers=1)
    verbs = verbs_of(cluster)
    code, said, beside = verbs.call("restart", "worker-0")
    assert (code, said) == (2, b"")
    assert str(cluster.places.task("worker-0") / "work") in beside, "what is lost there"
    assert f"train_dir ({cluster.job().spec.train_dir})" in beside, "what stays there"
    assert "--yes: cannot ask without a terminal. Use --yes to continue." in beside

    refusing = verbs.terminal("restart", "--without-data", "worker-0")
    refusing.until_said("Continue? [y/N]")
    refusing.type("n\n")
    assert refusing.end() == 1
    assert len(cluster.started("worker-0")) == 1

    agreeing = verbs.terminal("restart", "--without-data", "worker-0")
    agreeing.until_said("Continue? [y/N]")
    agreeing.type("y\n")
    assert agreeing.end() == 0
    assert "worker-0 was replaced." in agreeing.said
    assert verbs.call("restart", "worker-0", "--yes")[:2] == (0, b"worker-0 was restarted.\n")
    cluster.until_running("worker-0", times=3)
    assert verbs.call("restart", "worker-7", "--yes")[0] == 3
