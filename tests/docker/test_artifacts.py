"""What a run has in the volume of `train_dir` is on this computer: in the output, and after `pulumi destroy`."""

import json
from pathlib import Path

from tests.docker.project import DockerProject
from tests.verbs import Verbs
from tfdeploy.backends.record_copy import RecordCopy

JOB = (
    'command=["python", "train.py"], code="code", ps=1, workers=2, env={"COUNTER": __import__("os").environ["COUNTER"]}'
)

SAVES = """\
import os, pathlib, time

train = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
if os.environ["TFDEPLOY_HOSTNAME"] == "worker-0":
    (train / "export/1").mkdir(parents=True)
    (train / "export/1/saved_model.pb").write_bytes(bytes(range(256)))
    for suffix in (".index", ".data-00000-of-00001"):
        (train / f"model.ckpt-9{suffix}").write_text(suffix)
    (train / "checkpoint").write_text(f'model_checkpoint_path: "{train}/model.ckpt-9"\\n')
    with (train / "big.keras").open("wb") as file:
        file.write(os.urandom(1 << 20))
        file.truncate(40 << 20)
    print("saved", flush=True)
while os.environ["TFDEPLOY_JOB_NAME"] == "ps" or not (pathlib.Path(os.environ["COUNTER"]) / "gate").exists():
    time.sleep(0.1)
"""


def names(folder: Path) -> dict[str, int]:
    """The files below a folder, with their sizes."""
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def test_the_artifacts_are_here_when_the_run_has_ended_and_after_destroy(project: DockerProject) -> None:
    project.write(JOB, SAVES)
    project.open()
    project.up()
    (entry,) = [json.loads(path.read_text()) for path in (project.folder / "state/tfdeploy/registry").glob("*.json")]
    run = project.outputs()["artifacts"][0]["path"].split("/runs/")[1].partition("/")[0]
    folder = RecordCopy(entry["cluster"]).record.artifacts_folder(run)
    expected = {
        "export/1/saved_model.pb": 256,
        "model.ckpt-9.index": 6,
        "model.ckpt-9.data-00000-of-00001": 20,
        "checkpoint": 81,
        "big.keras": 40 << 20,
    }
    assert names(folder) == expected
    rows = project.outputs()["artifacts"]
    assert {row["name"]: (row["kind"], row["path"], row["problem"]) for row in rows} == {
        "export/1": ("model", f"{folder}/export/1", ""),
        "big.keras": ("keras", f"{folder}/big.keras", ""),
        "model.ckpt-9": ("checkpoint", f"{folder}/model.ckpt-9", ""),
    }
    assert list(project.up().steps()) == ["unchanged"]
    assert project.outputs()["artifacts"] == rows
    project.destroy()
    (retained,) = (project.folder / "state/tfdeploy").rglob("runs/*/artifacts")
    assert names(retained) == expected
    assert project.left() == {}
    copied = Verbs(project.program, project.env).call("cp", f"run:{run}/model.ckpt-9.index", "-")
    assert copied == (0, b".index", ""), "from the record that was kept"
