"""The command while another update has the stack's lock: following and restarting need no lock, healing does."""

from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.registered import verbs_of


def test_while_another_update_runs_tasks_are_followed_and_restarted_and_heal_is_refused(
    cluster: Standing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}/stacks")
    cluster.up("print('started', flush=True)\n" + WAITS, workers=2)
    cluster.until_running("worker-0", "worker-1")
    verbs = verbs_of(cluster)
    project, stack = cluster.cluster["project"], cluster.cluster["stack"]
    lock = tmp_path / "stacks/.pulumi/locks/organization" / project / stack / "of-another-update.json"
    lock.parent.mkdir(parents=True)
    lock.touch()

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
