"""Waiting for a cluster of which nothing exists, and the command while another update has the stack's lock."""

from pathlib import Path

import pytest

from tests.components.conftest import TOKEN, WAITS, Standing
from tests.components.registered import lock_of, verbs_of
from tests.verbs import COMMAND, Terminal
from tfdeploy.backends.local.backend import BACKEND

GONE = "exists on local, and no update is creating it. `pulumi up` creates it."


@pytest.fixture(autouse=True)
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Pulumi stores stacks, and the locks of running updates."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/stacks")
    return tmp_path / "stacks"


@pytest.mark.parametrize("command", [("wait",), ("events", "--follow"), ("logs", "--follow")])
def test_an_update_that_was_cancelled_before_it_created_anything_is_not_waited_for(
    command: tuple[str, ...], cluster: Standing
) -> None:
    cluster.declare(WAITS, workers=1)
    code, _, message = verbs_of(cluster).call(*command)
    assert (code, GONE in message) == (3, True)


def test_an_update_that_runs_is_waited_for(cluster: Standing, stacks: Path) -> None:
    cluster.declare(WAITS, workers=1)
    verbs, lock = verbs_of(cluster), lock_of(cluster, stacks)
    assert verbs.call("wait", "--timeout", "1s")[0] == 5
    lock.unlink()
    assert verbs.call("wait", "--timeout", "1s")[0] == 3


def test_a_cluster_that_another_computer_destroys_meanwhile_is_waited_for_no_longer(cluster: Standing) -> None:
    """Then the registry of this computer has it as it was."""
    cluster.run(WAITS, workers=1)
    verbs = verbs_of(cluster)
    waiting = Terminal([COMMAND, "wait"], verbs.folder)
    following = Terminal([COMMAND, "events", "--follow"], verbs.folder)
    following.until_said("worker-0")
    BACKEND.runner.delete_all(cluster.cluster, TOKEN, {"volumes": False, "record": False})
    # `destroy` stops the run first, so its end may be seen before that of the cluster.
    code = waiting.end()
    assert (code == 3 and GONE in " ".join(waiting.said.split())) or (code == 1 and "stopped" in waiting.said)
    assert following.end() in (0, 3), following.said


def test_while_another_update_runs_tasks_are_followed_and_restarted_and_heal_is_refused(
    cluster: Standing, stacks: Path
) -> None:
    cluster.run("print('started', flush=True)\n" + WAITS, workers=2)
    verbs = verbs_of(cluster)
    lock_of(cluster, stacks)
    code, _, message = verbs.call("restart", "--lost")
    assert (code, "is locked: another update is running" in message) == (1, True)
    following = verbs.terminal("logs", "--follow", "worker-0")
    following.until_said("started")
    code, _, message = verbs.call("restart", "worker-0", "--yes")
    assert code == 0, message
    cluster.until_started("worker-0", 2)
    cluster.open()
    assert verbs.call("wait")[0] == 0
    assert following.end() == 0
    assert following.said.count("started") == 2
