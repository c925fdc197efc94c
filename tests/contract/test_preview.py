"""A preview leaves nothing behind: all files of the user are byte for byte the same after it."""

import hashlib
from pathlib import Path

from tests.integration.conftest import Project

JOB = 'command=["python", "train.py"], code="code", env={"COUNTER": __import__("os").environ["COUNTER"]}'
CHANGING = ("alive", "log", "supervisord.log", "controller.log")
"""Files that the cluster itself writes while it runs."""


def files(folder: Path) -> dict[str, str]:
    """Path to the hash of its content, of all files that only Pulumi programs write; of a run, whose files the controller writes at
    any time, the path of its folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and path.parent.name == "runs":
            found[str(path.relative_to(folder))] = "a run"
        elif path.name not in CHANGING and not {"__pycache__", "runs"} & set(path.parts) and path.is_file():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_a_preview_leaves_nothing_behind(project: Project) -> None:
    project.write(f"{JOB}, workers=1")
    state = project.folder / "state"
    unused = files(state)
    first = project.call("preview", "--stack", project.stack)
    assert files(state) == unused
    assert "~ worker-0" not in first.output, "the cluster of another login is not this one"

    project.up()
    project.write(f'{JOB}, workers=2, jobs={{"worker": {{"memory": "1GiB"}}}}')
    before = files(state), files(project.program)
    done = project.call("preview", "--stack", project.stack)
    assert done.exit_code == 0, done.output
    assert "+ worker-1" in done.output
    assert "~ worker-0  memory none -> 1 GiB" in done.output or project.folder.parent.name.startswith("toy")
    assert (files(state), files(project.program)) == before
    project.destroy()
