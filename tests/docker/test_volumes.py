"""What tasks mount, and what comes of it at restart, replace, change and destroy."""

import json

import pytest

from tests.docker.project import DockerProject
from tests.waiting import until

JOB = 'command=["python", "train.py"], code="code", workers=1, env={"COUNTER": __import__("os").environ["COUNTER"]}'

TELLS = """\
import json, os, pathlib

def writes(folder):
    try:
        pathlib.Path(folder, "written").write_text(os.environ["TFDEPLOY_HOSTNAME"])
        return True
    except OSError as error:
        return error.strerror

about = {folder: writes(folder) for folder in ("/rw", "/ro", "/named", "/long", "/memory")}
about["data"] = [pathlib.Path(os.environ["TFDEPLOY_DATA_DIR"], "data").read_text(), writes(os.environ["TFDEPLOY_DATA_DIR"])]
about["train"] = writes(os.environ["TFDEPLOY_TRAIN_DIR"])
about["shm"] = os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
about["memory"] = os.statvfs("/memory").f_blocks * os.statvfs("/memory").f_frsize
print(json.dumps(about))
"""

LIVES = """\
import os, pathlib, time
places = {"train": pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"]), "own": pathlib.Path("/tmp")}
for name, place in places.items():
    with (place / "lives").open("a") as lives:
        lives.write("x")
print(*[f"{name}={len((place / 'lives').read_text())}" for name, place in places.items()], "as", os.getuid(), os.getgid(), flush=True)
time.sleep(600)
"""


def test_every_form_of_a_mount(project: DockerProject) -> None:
    for name in ("rw", "ro", "data", "train"):
        (project.program / name).mkdir()
    (project.program / "data" / "data").write_text("the data")
    volumes = [
        f"{project.program}/rw:/rw",
        f"{project.program}/ro:/ro:ro",
        f"{project.name}-named:/named",
        f"type=volume,source={project.name}-long,target=/long,readonly",
        "type=tmpfs,target=/memory,size=8MiB",
    ]
    project.write(
        f'{JOB}, container={{"volumes": {volumes}, "shm_size": "96MiB"}}, data_dir="data", train_dir="train"', TELLS
    )
    project.up()
    outputs = project.outputs()
    read_only = "Read-only file system"
    assert json.loads(outputs["logs"]["worker-0"][0]) == {
        "/rw": True,
        "/ro": read_only,
        "/named": True,
        "/long": read_only,
        "/memory": True,
        "data": ["the data", read_only],
        "train": True,
        "shm": 96 << 20,
        "memory": 8 << 20,
    }
    assert (project.program / "rw" / "written").read_text() == "worker-0"
    run = project.job().spec.id
    assert (project.program / "train" / run / "written").read_text() == "worker-0"
    named = {f"{project.name}-named", f"{project.name}-long"}
    assert project.volumes() == named

    project.write(f'{JOB}, container={{"volumes": {volumes}}}, data_dir="data", train_dir="train"', TELLS)
    said = project.call("preview", "--stack", project.stack).output
    for place in (*(f"volume: volume {name} on " for name in named), f"checkpoints: {project.program}/train"):
        assert place in said.partition("`pulumi destroy` keeps:")[2]
    project.destroy()
    assert (project.program / "train" / run / "written").exists()
    assert project.volumes() == named, "what the user named is never deleted"


@pytest.mark.full
def test_checkpoints_of_a_plain_user_outlive_containers(project: DockerProject, user_image: str) -> None:
    base = f'{JOB}, wait="0", container={{"image": {user_image!r}, "retain_volumes": True}}'

    def told(line: str) -> bool:
        return any(shown.text == line for shown in project.look(10).view.logs["worker-0"])

    project.write(base, LIVES)
    project.up()
    until(lambda: told("train=1 own=1 as 1000 0"), "the first life")
    project.docker("kill", project.container("worker-0"))
    until(lambda: told("train=2 own=1 as 1000 0"), "the second life, after a restart")
    project.write(f'{base}, jobs={{"worker": {{"memory": "256MiB"}}}}', LIVES)
    assert project.up().touched() == {"test-worker-0"}
    until(lambda: told("train=3 own=1 as 1000 0"), "the third life, after a change of limits")
    project.write(f'{base}, container={{"user": "1000:5", "volumes": ["{project.name}-other:/other"]}}', LIVES)
    assert project.up().touched() == {"test-worker-0"}
    until(lambda: told("train=4 own=1 as 1000 5"), "the fourth life, after a change of user and volumes")

    done = project.call("destroy", "--yes", "--skip-preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    left = project.left()
    assert left.keys() == {"volume"}
    (kept,) = left["volume"].split()
    assert kept.endswith("-train")
    assert f"the checkpoints are retained in the volume {kept} on " in done.output
    assert f"`docker volume rm {kept}` there removes them" in done.output
    assert project.volumes() == {f"{project.name}-other"}
    project.docker("volume", "rm", kept)
