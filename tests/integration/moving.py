"""A project whose run moves between backends, and a training that shows where it continues."""

import json
import re
from pathlib import Path
from typing import Any

from tests.integration.conftest import PROGRAM, Call, Project
from tests.toy_backend.project import toys
from tests.waiting import until
from tfdeploy.agent.model.run_state import RunState
from tfdeploy.agent.record.record import Record

TRAINS = """\
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["TFDEPLOY_TRAIN_DIR"])
step = 0
if (folder / "checkpoint").exists():
    newest = (folder / "checkpoint").read_text().split('"')[1]
    step = int((folder / f"{os.path.basename(newest)}.data-00000-of-00001").read_text())
print("continues at step", step, "in", folder, flush=True)
while step < 100000:
    step += 1
    print(f"step {step}: loss {1 / step}", flush=True)
    if step % 5 == 0:
        for suffix in (".data-00000-of-00001", ".index"):
            (folder / f"model.ckpt-{step}{suffix}").write_text(str(step))
        draft = folder / "draft"
        draft.write_text(f'model_checkpoint_path: "{folder}/model.ckpt-{step}"\\n')
        draft.replace(folder / "checkpoint")
    time.sleep(0.05)
    if (folder / "end").exists():
        break
"""
"""Saves a checkpoint every five steps, as TensorFlow does: with absolute paths."""

FAILS_ELSEWHERE = f"""\
import os
if "/clusters/" not in os.environ["TFDEPLOY_TRAIN_DIR"]:
    print("this machine is too small", flush=True)
    raise SystemExit(3)
{TRAINS}"""
"""Trains on `local` only."""

ARGUMENTS = 'command=["python", "train.py"], code="code", workers=1, wait="1"'


class Moving(Project):
    """A project whose backend is in the configuration."""

    def begin_on(self, backend: str, arguments: str = ARGUMENTS, script: str = TRAINS) -> None:
        """Train there."""
        self.write(arguments, script, PROGRAM)
        self.init()
        self.move_to(backend)

    def configure(self, backend: str) -> None:
        """Set the backend, and nothing else."""
        self.set("tfdeploy:backend", backend)

    def move_to(self, backend: str, fails: bool = False) -> Call:
        """`pulumi up` on this backend."""
        self.configure(backend)
        return self.up(fails=fails)

    def record_at(self, backend: str) -> Record:
        """The record on one backend: the controller's, or its copy."""
        folder = {"local": "clusters", "toy": "toys"}.get(backend, backend)
        (home,) = (self.folder / "state/tfdeploy" / folder).glob("test-*")
        return Record(home / "record")

    def has_place(self, backend: str) -> bool:
        """Whether this computer has files of the cluster on that backend."""
        folder = {"local": "clusters", "toy": "toys"}.get(backend, backend)
        return any((self.folder / "state/tfdeploy" / folder).glob("test-*"))

    def run_at(self, backend: str) -> RunState:
        """The current run there."""
        run = self.record_at(backend).current()
        assert run is not None
        return run

    def lines_at(self, backend: str) -> list[str]:
        """What the worker has printed, in all its attempts."""
        run, record = self.run_at(backend), self.record_at(backend)
        return [line.text for line in record.log(run.spec.id, "worker-0").tail(1_000_000)]

    def steps_at(self, backend: str) -> list[int]:
        """The steps in the worker's output."""
        return [int(match[1]) for line in self.lines_at(backend) if (match := re.match(r"step (\d+):", line))]

    def until_step(self, backend: str, step: int) -> None:
        """Wait for this step, which has a checkpoint if it is a multiple of five."""
        until(lambda: max(self.steps_at(backend), default=0) > step, f"step {step} on {backend}")

    def trains_on(self, backend: str) -> None:
        """Wait for ten more steps than now."""

        def observed() -> int:
            self.shown()  # it brings the copy of the record up to date
            return max(self.steps_at(backend), default=0)

        step = observed() + 10
        until(lambda: observed() > step, f"step {step} on {backend}")

    def listed(self, command: str) -> list[dict[str, Any]]:
        """What a command lists of the cluster as JSON."""
        rows: list[dict[str, Any]] = json.loads(self.tfdeploy(command, "--json", "--cluster", "test"))
        return rows

    def prefixes(self) -> set[str]:
        """What the names of the cluster's resources in the state begin with."""
        names = [one["urn"].rpartition("::")[2] for one in self.resources()]
        return {name.removesuffix("-cleanup") for name in names if name.endswith("-cleanup")}

    def registered_backend(self) -> str:
        """The backend of the cluster's entry in the registry."""
        (path,) = (self.folder / "state/tfdeploy/registry").glob("test-*.json")
        backend: str = json.loads(path.read_text())["cluster"]["backend"]
        return backend


class MovingProject(Moving):
    """A project that knows the toy backend."""

    def __init__(self, folder: Path, name: str = "project") -> None:
        super().__init__(folder, name)
        self.env |= toys()


def continued_at(lines: list[str]) -> list[int]:
    """The step that each start of the program has begun at."""
    return [int(match[1]) for line in lines if (match := re.match(r"continues at step (\d+)", line))]


def assert_goes_on(updated: Call, backend: str, lines: list[str]) -> None:
    """The update names the first step that it has observed at the new place."""
    match = re.search(rf"test: the run continues at step ([\d,]+) on {backend}\.", updated.output)
    assert match, updated.output
    last = max(int(match[1]) for line in lines if (match := re.match(r"step (\d+)", line)))
    assert continued_at(lines)[-1] <= int(match[1].replace(",", "")) <= last


def assert_continuous(lines: list[str], last: int = 0) -> None:
    """After each start the steps go on one by one from a checkpoint, at most one period of checkpoints before the last step, which was
    `last` before these lines.
    """
    for line in lines:
        if match := re.match(r"continues at step (\d+)", line):
            begin = int(match[1])
            assert begin <= last < begin + 10, f"{line} after step {last}"
            last = begin
        elif match := re.match(r"step (\d+):", line):
            assert int(match[1]) == last + 1, line
            last += 1
