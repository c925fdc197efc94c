"""A cluster whose folder has characters that mean something to the programs that read its path."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.processes import alive
from tests.waiting import until

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
    cluster.open()
    cluster.until_state("succeeded")
    pid = cluster.pid("supervisord")
    assert (cluster.places.home / "controller.log").exists()
    cluster.clear()
    until(lambda: not alive(pid), "supervisord has ended")
