"""What a run has in `train_dir` is in the record when the run has ended, whatever fails meanwhile."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.components.conftest import Standing
from tests.components.registered import verbs_of
from tests.waiting import until
from tfdeploy.agent.model.events import ARTIFACTS_STORED
from tfdeploy.outputs import ArtifactRow

MIB = 1 << 20

SAVES = """
import os, pathlib, sys
from steps import begin, hostname, wait_for

train = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])


def put(name, content=b"content"):
    assert not name.startswith("/")
    path = train / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def checkpoint(step):
    prefix = train / f"model.ckpt-{step}"
    put(f"model.ckpt-{step}.index", f"index {step}")
    put(f"model.ckpt-{step}.data-00000-of-00001", f"data {step}")
    put("checkpoint", f'model_checkpoint_path: "{prefix}"\\nall_model_checkpoint_paths: "{prefix}"\\n')


def large(name, size):
    put(name)
    with (train / name).open("r+b") as file:
        file.truncate(size)


if hostname.startswith("worker"):
    exec(sys.argv[1])
begin()
wait_for("gate", hostname)
"""
"""A program whose workers run the statements of its argument, and end when the test opens the gate."""


def saves(cluster: Standing, statements: str, **args: object) -> None:
    """Begin a run that executes these statements."""
    cluster.up(SAVES, **{"command": [sys.executable, "program.py", statements], "workers": 1, **args})


def artifacts(cluster: Standing) -> Path:
    """The folder of the artifacts."""
    return cluster.places.record / "runs" / cluster.job().spec.id / "artifacts"


def files(cluster: Standing) -> dict[str, bytes]:
    """The artifacts, by name. One may be replaced meanwhile."""
    folder, found = artifacts(cluster), {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def until_uploaded(cluster: Standing) -> list[ArtifactRow]:
    """Wait until the launchers have ended; the output `artifacts`."""
    until(cluster.idle, "the launchers have ended", seen=cluster.happened)
    return cluster.look().artifacts


def draft(cluster: Standing) -> int:
    """How many bytes have arrived of a file that is not complete."""
    folder = artifacts(cluster).with_name("artifacts.draft")
    sizes = [path.stat().st_size for path in folder.glob("*.draft")] if folder.exists() else []
    return max(sizes, default=0)


@contextmanager
def in_upload(cluster: Standing) -> Iterator[int]:
    """Inside, so much of an upload has arrived, and the controller is stopped: it does not end before the test has done its part."""
    controller = psutil.Process(cluster.pid("controller"))

    def has_begun() -> int:
        controller.suspend()
        arrived = draft(cluster)
        if not arrived:
            controller.resume()
        return arrived

    arrived = until(has_begun, "a part has arrived", seen=cluster.happened)
    try:
        yield arrived
    finally:
        with suppress(psutil.NoSuchProcess):
            controller.resume()


def test_models_and_the_newest_checkpoint_are_in_the_record(cluster: Standing) -> None:
    statements = 'put("export/1/saved_model.pb"); put("export/1/variables/v.index"); checkpoint(1); checkpoint(20); put("events.out")'
    saves(cluster, f'{statements}; put("best.keras", b"keras")', ps=1)
    cluster.until_running("worker-0")
    assert not artifacts(cluster).exists()
    cluster.finish()
    rows = until_uploaded(cluster)
    assert files(cluster) == {
        "export/1/saved_model.pb": b"content",
        "export/1/variables/v.index": b"content",
        "best.keras": b"keras",
        "model.ckpt-20.index": b"index 20",
        "model.ckpt-20.data-00000-of-00001": b"data 20",
        "checkpoint": b'model_checkpoint_path: "model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-20"\n',
    }
    folder = artifacts(cluster)
    assert [(row["name"], row["kind"], row["path"], row["problem"]) for row in rows] == [
        ("export/1", "model", f"{folder}/export/1", ""),
        ("best.keras", "keras", f"{folder}/best.keras", ""),
        ("model.ckpt-20", "checkpoint", f"{folder}/model.ckpt-20", ""),
    ]
    train_dir = Path(cluster.look().train_dir)
    name = "model.ckpt-20.data-00000-of-00001"
    (train_dir / name).write_bytes(b"written later")
    assert (folder / name).read_bytes() == b"data 20", "the record has a copy, and no link"
    stored = [event for event in cluster.events() if event.kind == ARTIFACTS_STORED]
    assert [len(event.artifacts) for event in stored] == [3]
    retained = cluster.kept(cluster.clear())
    assert list(retained.rglob("runs/*/artifacts/best.keras"))


def test_a_launcher_that_is_killed_while_it_uploads_is_continued_by_the_next_one(cluster: Standing) -> None:
    saves(cluster, f'large("big.keras", {600 * MIB})')
    cluster.until_running("worker-0")
    cluster.open()
    with in_upload(cluster) as known:
        cluster.kill("worker-0")
    until(lambda: not draft(cluster) or draft(cluster) >= known, "what has arrived stays")
    until((artifacts(cluster) / "big.keras").exists, "the upload ends", seen=cluster.happened)
    assert (artifacts(cluster) / "big.keras").stat().st_size == 600 * MIB
    until_uploaded(cluster)
    begun = [event.count for event in cluster.events() if event.kind == "artifacts_begun"]
    assert begun[0] == 600 * MIB
    assert begun[-1] < begun[0]


def test_a_cluster_that_is_deleted_waits_for_the_upload(cluster: Standing) -> None:
    saves(cluster, f'large("big.keras", {300 * MIB})')
    cluster.until_running("worker-0")
    retained = cluster.kept(cluster.clear())
    (path,) = retained.rglob("runs/*/artifacts/big.keras")
    assert path.stat().st_size == 300 * MIB


TRAINS = """
begin()
import re
saved = train / "checkpoint"
step = int(re.search("ckpt-([0-9]+)", saved.read_text())[1]) if saved.exists() else 0
print(f"begins at {step}", flush=True)
checkpoint(step + 10)
wait_for("save", "gate")
checkpoint(step + 20)
wait_for("gate")
put("last.keras")
sys.exit()
"""


def stored_step(cluster: Standing) -> str:
    """The newest checkpoint in the record."""
    return files(cluster).get("checkpoint", b"").decode().partition("ckpt-")[2].partition('"')[0]


def test_a_task_with_an_empty_train_dir_continues_at_the_checkpoint_that_was_uploaded_last(cluster: Standing) -> None:
    saves(cluster, TRAINS, ps=1, checkpoint_upload_interval=0.05)
    cluster.until_running("worker-0", "ps-0")
    until(lambda: stored_step(cluster) == "10", "the first checkpoint is stored", seen=cluster.happened)
    cluster.open("save")
    newest = ["checkpoint", "model.ckpt-20.data-00000-of-00001", "model.ckpt-20.index"]
    until(lambda: sorted(files(cluster)) == newest, "the next one replaces it", seen=cluster.happened)
    run, verbs = cluster.job().spec.id, verbs_of(cluster)
    assert verbs.call("cp", f"run:{run}/model.ckpt-20.index", "-") == (0, b"index 20", ""), "while it trains"
    assert [row["name"] for row in cluster.look().artifacts] == ["model.ckpt-20"]
    (cluster.folder / "save").unlink()
    shutil.rmtree(cluster.look().train_dir)
    cluster.kill("worker-0")
    cluster.until_running("worker-0", times=2)
    cluster.until_output("worker-0", b"begins at 0\nbegins at 20\n")
    until(lambda: stored_step(cluster) == "30", "it trains on", seen=cluster.happened)
    cluster.finish()
    until_uploaded(cluster)
    assert stored_step(cluster) == "40"
    stored = [event.artifacts for event in cluster.events() if event.kind == ARTIFACTS_STORED]
    assert stored[0] == ["model.ckpt-10"], "the first one is an event, and what the end has"
    assert [sorted(names) for names in stored[1:]] == [["last.keras", "model.ckpt-40"]]
