"""Who may read the files of a local cluster."""

import os

from tests.components.conftest import Standing
from tfdeploy.paths import state_folder

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
