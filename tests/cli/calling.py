"""The `tfdeploy` command, called as a user calls it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.conftest import Project
from tests.verbs import Verbs

TRAIN = """\
import os, pathlib, sys, time

gate = pathlib.Path(os.environ["COUNTER"]) / "gate"
name = os.environ["TFDEPLOY_HOSTNAME"]
print("begins", name, flush=True)
print("a warning of", name, file=sys.stderr, flush=True)
step = 0
while name.startswith("ps") or not gate.exists():
    time.sleep(0.05)
    step += 1
    if name.startswith("worker"):
        print(f"step {step}: loss: {1 / step:.4f}", flush=True)
print("accuracy: 0.5", flush=True)
"""
"""What trains until the test opens the gate."""

ARGUMENTS = (
    'command=["python", "train.py", "--train_steps=999999"], code="code", ps=1, workers=2, wait="0", '
    'metrics={"accuracy": r"accuracy: (.*)"}, '
    'env={"COUNTER": __import__("os").environ["COUNTER"]}'
)


@dataclass(frozen=True)
class Answer:
    """What a call of the command came to."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What it printed, as JSON; fails the test, with what it printed, where it is none."""
        try:
            return json.loads(self.out)
        except ValueError:
            raise AssertionError(f"no JSON, exit code {self.code}: {self.out}{self.err}") from None


def tfdeploy(project: Project, *arguments: str, folder: Path | None = None, **env: str) -> Answer:
    """Call the command in the folder of a project's program."""
    code, out, err = Verbs(folder or project.program, {**project.env, **env}).call(*arguments)
    return Answer(code, out.decode(), err)


def start(project: Project, *arguments: str) -> "subprocess.Popen[str]":
    """Start the command, its output into a pipe."""
    return subprocess.Popen(
        ["tfdeploy", *arguments],
        cwd=project.program,
        env=project.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def open_gate(project: Project) -> None:
    """Let the training come to its end."""
    (project.folder / "counter" / "gate").touch()
