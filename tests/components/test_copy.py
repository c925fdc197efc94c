"""Files of tasks that are processes: `tfdeploy cp` while they run, and what it reports where it cannot copy."""

import os
import signal
import subprocess
from pathlib import Path

from tests.components.conftest import WAITS, Standing
from tests.components.registered import verbs_of
from tests.verbs import COMMAND, Verbs
from tests.waiting import until
from tfdeploy.agent.record.record import Record

SIZE = 100_000_000
"""Of the file whose copy is interrupted: large enough not to arrive in one moment."""

WRITES = f"""
import pathlib
from steps import begin, wait_for

train = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
(train / "model").mkdir()
(train / "model" / "saved_model.pb").write_bytes(bytes(range(256)))
(train / "model" / "far").symlink_to("/etc/passwd")
pathlib.Path("out").mkdir()
pathlib.Path("out", "result.json").write_text("{{}}")
with open("large", "wb") as large:
    large.truncate({SIZE})
begin()
wait_for("gate")
"""


def train_dir_is_copied(verbs: Verbs, folder: Path) -> None:
    code, said, beside = verbs.call("cp", "worker-0:train_dir/model", ".")
    assert (code, said.decode()) == (0, f"{folder}/model: 1 file, 256 B\n")
    assert beside == "far: skipped, a link to /etc/passwd, outside of the folder.\n"
    assert [path.name for path in (folder / "model").iterdir()] == ["saved_model.pb"]
    assert (folder / "model" / "saved_model.pb").read_bytes() == bytes(range(256))


def working_directory_is_copied(cluster: Standing, verbs: Verbs, folder: Path) -> None:
    assert verbs.call("cp", "worker-0:out/result.json", "-") == (0, b"{}", "")
    assert verbs.call("cp", "worker-0:out", "other")[0] == 0
    assert (folder / "other" / "result.json").read_text() == "{}"
    work = cluster.places.task("worker-0") / "work" / cluster.job().spec.id
    assert verbs.call("cp", f"worker-0:{work}/out/result.json", "-") == (0, b"{}", "")
    code, _, beside = verbs.call("cp", "worker-0:out/none", ".")
    assert (code, f"worker-0:out/none does not exist. {work}/out has: result.json." in beside) == (3, True)
    code, _, beside = verbs.call("cp", "ps-0:out", ".")
    assert (code, "has no task 'ps-0'; it has worker-0." in beside) == (3, True)


def interrupted_copy_leaves_nothing(verbs: Verbs, folder: Path) -> None:
    while not interrupts(folder):  # a copy that ends before it is interrupted is made again
        (folder / "large").unlink()
    assert not (folder / "large").exists()
    assert not list(folder.glob(".*.part"))
    terminal = verbs.terminal("cp", "worker-0:large", ".")
    assert terminal.end() == 0, terminal.said
    assert "MB" in terminal.said or "MiB" in terminal.said, "a terminal gets a progress bar"
    assert (folder / "large").stat().st_size == SIZE


def interrupts(folder: Path) -> bool:
    process = subprocess.Popen([COMMAND, "cp", "worker-0:large", "."], cwd=folder, stdout=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or any(map(size, folder.glob(".*.part"))), "a part")
    process.send_signal(signal.SIGINT)
    return process.wait() == 130


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_files_of_a_task_are_copied_while_it_runs(cluster: Standing, tmp_path: Path) -> None:
    cluster.run(f"import os\n{WRITES}", workers=1)
    until((cluster.folder / "starts-worker-0").exists, "the files are written")
    verbs = verbs_of(cluster)
    folder = Path(os.path.realpath(verbs.folder))
    train_dir_is_copied(verbs, folder)
    working_directory_is_copied(cluster, verbs, folder)
    interrupted_copy_leaves_nothing(verbs, folder)

    cluster.finish()
    run_id = cluster.job().spec.id
    code, said, beside = verbs.call("cp", "worker-0:train_dir/model", ".")
    assert (code, said) == (1, b"")
    assert "worker-0 has ended (succeeded)" in beside
    assert f"`tfdeploy cp run:{run_id}/PATH DEST`" in beside
    artifact = Record(cluster.places.record).artifacts_folder(run_id) / "model" / "kept"
    artifact.parent.mkdir(parents=True, exist_ok=True)
    artifact.write_text("kept")
    assert verbs.call("cp", f"run:{run_id[:5]}/model/kept", "-") == (0, b"kept", "")


def test_a_train_dir_at_a_url_is_not_in_the_task(cluster: Standing) -> None:
    cluster.run(WAITS, workers=1, train_dir="s3://bucket/folder")
    code, _, beside = verbs_of(cluster).call("cp", "worker-0:train_dir/model", ".")
    assert code == 1
    assert "the train_dir of this run is s3://bucket/folder/" in beside
