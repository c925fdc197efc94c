"""The folder of a cluster: characters in its path, who may read it, and whose it is."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.components.conftest import TOKEN, WAITS, Standing
from tests.components.processes import alive
from tests.waiting import until
from tfdeploy.backends.local.backend import BACKEND
from tfdeploy.paths import state_folder

NAMES = (
    "ws%2Fmain %s %(here)s 100%",
    "a ;b #c; d",
    'it\'s "quoted" `x` \\y\\',
    "[a-z]* {x} ? !~ $HOME ${PATH} $(false)",
)
LINES = ("one\ntwo\n; three\r = four:", "größe,日本 \u2028 \t")
"""As Jenkins names folders, comments, quotes, patterns; lines, and letters."""


@pytest.mark.parametrize("names", [NAMES, LINES], ids=["signs", "lines"])
def test_a_cluster_runs_wherever_its_folder_is(
    clusters: Callable[[str], Standing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.joinpath(*names)))
    cluster = clusters("anywhere")
    cluster.up(WAITS, workers=1, restart={"maximum": 0})
    first = cluster.pid("worker-0")
    cluster.until_started("worker-0")
    cluster.kill("worker-0")
    until(lambda: cluster.pid("worker-0") not in (0, first), "supervisord has started the launcher again")
    cluster.finish()
    pid = cluster.pid("supervisord")
    assert (cluster.places.home / "controller.log").exists()
    cluster.clear()
    until(lambda: not alive(pid), "supervisord has ended")


UMASK = 0o027


def test_the_users_own_train_dir_has_the_users_umask_and_the_state_folder_is_private(cluster: Standing) -> None:
    script = "import os, pathlib\npathlib.Path(os.environ['TFDEPLOY_TRAIN_DIR'], 'checkpoint').write_text('1')"
    previous = os.umask(UMASK)
    try:
        cluster.up(script, workers=1, train_dir="models")
    finally:
        os.umask(previous)
    run = cluster.until_state("succeeded").run
    folder = cluster.folder / "models"
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / run, folder / run / "checkpoint")]
    assert modes == [0o777 & ~UMASK, 0o777 & ~UMASK, 0o666 & ~UMASK]
    assert [path.stat().st_mode & 0o777 for path in (state_folder(), cluster.places.home)] == [0o700, 0o700]
    files = [path for path in cluster.places.record.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


def test_a_computer_with_the_same_home_folder_touches_nothing_of_another_ones_cluster(cluster: Standing) -> None:
    """The id alone tells clusters of one project, stack and name apart."""
    cluster.run(WAITS, workers=1)
    identity = cluster.places.identity
    own = identity.read_text()
    identity.write_text(json.dumps({**json.loads(own), "machine": "0123456789abcdef0123456789abcdef"}))
    try:
        BACKEND.runner.stop_run(cluster.run_props())
        BACKEND.runner.delete_task(cluster.task_props("worker-0"))
        BACKEND.runner.delete_unlisted(cluster.cluster, TOKEN, [])
        assert "is on another computer (machine id 0123456789abcdef" in cluster.clear()
        assert cluster.status("worker-0") == "running"
    finally:
        identity.write_text(own)
    cluster.finish()
