"""What a version has stored of a cluster on `local`: the state of its stack, its record, and its entry in the registry.

`python -m tests.integration.stored_cluster FILE` trains with the present version and writes the file. Nobody changes the file of
a version that was released: later versions must read it.
"""

import base64
import json
import platform
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.integration.conftest import Project
from tfdeploy.backends.local.paths import machine_id

NAME = "frozen"
ARGUMENTS = (
    'command=["python", "train.py"], code="code", ps=1, workers=1, env={"RATE": "0.1"}, '
    r'metrics={"accuracy": r"accuracy: (\S+)"}'
)
TRAIN = """\
import os, pathlib, time
hostname = os.environ["TFDEPLOY_HOSTNAME"]
print("accuracy: 0.9" if hostname == "worker-0" else "serves", flush=True)
if hostname == "worker-0":
    pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"], "model.keras").write_text("weights")
while hostname == "ps-0":
    time.sleep(1)
"""
_BINARY = "base64:"
_KEPT = (
    "backend/.pulumi/stacks/*/*.json",
    *(f"program/{name}" for name in ("*.yaml", "*.py", "code/*")),
    *(f"state/tfdeploy/{name}" for name in ("registry/*", "code/*/*")),
    *(f"state/tfdeploy/clusters/*/{name}" for name in ("cluster.json", "token", "record/**/*", "train/**/*")),
)
"""Programs, settings and logs of processes are not kept: each version writes them when it starts the cluster's processes."""


def store(file: Path) -> None:
    """Train, and write what is stored then."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "p", NAME)
        try:
            project.write(ARGUMENTS, TRAIN)
            project.init()
            project.up()
            file.write_text(json.dumps(_read(project), indent=1) + "\n")
        finally:
            project.clean()


def restore(file: Path, folder: Path) -> Project:
    """A project that has stored what the file has. Its cluster runs nowhere, as after a restart of the machine."""
    project = Project(folder, NAME)
    names = _of_this_machine(project)
    for name, text in json.loads(file.read_text()).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith(_BINARY):
            path.write_bytes(base64.b64decode(text.removeprefix(_BINARY)))
        else:
            path.write_text(re.sub("@[A-Z]+@", lambda found: names[found[0]], text))
    return project


def _read(project: Project) -> dict[str, str]:
    paths = sorted(path for kept in _KEPT for path in project.folder.glob(kept) if path.is_file())
    return {str(path.relative_to(project.folder)): _text(path, project) for path in paths}


def _text(path: Path, project: Project) -> str:
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return _BINARY + base64.b64encode(path.read_bytes()).decode()
    if path == project.state():
        text = json.dumps(json.loads(text, object_hook=_without_positions))
    for name, own in _of_this_machine(project).items():
        text = re.sub(rf"(?<!\w){re.escape(own)}\b", name, text) if own else text
    return text


def _without_positions(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a resource without where in this machine's files the program registered it."""
    return {name: field for name, field in fields.items() if name not in ("sourcePosition", "stackTrace")}


def _of_this_machine(project: Project) -> dict[str, str]:
    """The names that a file has in place of what another machine has not."""
    return {
        "@FOLDER@": str(project.folder),
        "@PYTHON@": sys.prefix,
        "@MACHINE@": machine_id(),
        "@HOST@": platform.node(),
    }


if __name__ == "__main__":
    store(Path(sys.argv[1]))
