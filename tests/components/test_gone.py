"""Waiting for a cluster of which nothing exists."""

from pathlib import Path

import pytest

from tests.components.conftest import TOKEN, WAITS, Standing
from tests.components.registered import verbs_of
from tests.verbs import COMMAND, Terminal
from tfdeploy.backends.local.backend import BACKEND

GONE = "exists on local, and no update is creating it. `pulumi up` creates it."


@pytest.fixture
def pulumi_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Pulumi stores stacks, and the locks of running updates."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/stacks")
    return tmp_path / "stacks" / ".pulumi"


@pytest.mark.parametrize("command", [("wait",), ("events", "--follow"), ("logs", "--follow")])
def test_an_update_that_was_cancelled_before_it_created_anything_is_not_waited_for(
    command: tuple[str, ...], cluster: Standing, pulumi_folder: Path
) -> None:
    cluster.declare(WAITS, workers=1)
    code, _, message = verbs_of(cluster).call(*command)
    assert (code, GONE in message) == (3, True)


def test_an_update_that_runs_is_waited_for(cluster: Standing, pulumi_folder: Path) -> None:
    cluster.declare(WAITS, workers=1)
    verbs = verbs_of(cluster)
    project, stack = cluster.cluster["project"], cluster.cluster["stack"]
    lock = pulumi_folder / "locks" / "organization" / project / stack / "of-another-update.json"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert verbs.call("wait", "--timeout", "1s")[0] == 5
    lock.unlink()
    assert verbs.call("wait", "--timeout", "1s")[0] == 3


def test_a_cluster_that_another_computer_destroys_meanwhile_is_waited_for_no_longer(
    cluster: Standing, pulumi_folder: Path
) -> None:
    """Then the registry of this computer has it as it was."""
    cluster.up(WAITS, workers=1)
    cluster.until_running("worker-0")
    verbs = verbs_of(cluster)
    waiting = Terminal([COMMAND, "wait"], verbs.folder)
    following = Terminal([COMMAND, "events", "--follow"], verbs.folder)
    following.until_said("worker-0")
    BACKEND.runner.delete_all(cluster.cluster, TOKEN, {"volumes": False, "record": False})
    # `destroy` stops the run first, so its end may be seen before that of the cluster.
    code = waiting.end()
    assert (code == 3 and GONE in " ".join(waiting.said.split())) or (code == 1 and "stopped" in waiting.said)
    assert following.end() in (0, 3), following.said
