"""`python -m bench.forecast_runs CONDITIONS`: record real runs of the programs of this repository, for the score of the forecast.

Each program has its own stack on `local`, which is updated again and again with one edit at a time, as somebody does who tries
things. What is stored is what the forecast reads: the receipts of the runs, in the order of their submission. They are added to those
of earlier recordings, with the conditions in words, such as "nothing else runs on the machine". It takes about 15 minutes.
"""

import argparse
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import ending
from .engine import ROOT, UP, Project, Workplace, project, workplace
from .pairs import log

DATA = ROOT / "data" / "forecast-runs.json"
_PROGRAMS = ROOT.parent / "programs"
_BUSY = 0.7


@dataclass(frozen=True)
class Edit:
    """What is changed before the next run: the text of a file, or the stack's configuration."""

    file: str = ""
    old: str = ""
    new: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """A program, and the edits of its runs; the first run is of the program as it is."""

    program: str
    edits: Sequence[Edit]
    config: Mapping[str, Any] = field(default_factory=dict)


def _command(old: str, new: str) -> Edit:
    return Edit("__main__.py", f'"train.py"{old}]', f'"train.py"{new}]')


_MNIST = Recorded(
    "mnist",
    (
        Edit("train/flags.py", "default=0.004", "default=0.003"),
        Edit("train/flags.py", "default=0.003", "default=0.005"),
        _command("", ', "--steps=2000"'),
        Edit("train/flags.py", "default=0.005", "default=0.004"),
        Edit(
            "train/flags.py",
            '"--hidden_units", type=positive, default=128',
            '"--hidden_units", type=positive, default=96',
        ),
        _command(', "--steps=2000"', ', "--steps=4000"'),
        Edit("train/flags.py", "default=0.004", "default=0.002"),
        _command(', "--steps=4000"', ', "--steps=3000"'),
    ),
)
_TFJOB = Recorded(
    "tfjob_keras",
    (
        Edit(
            "train/train.py",
            '"--learning_rate", type=float, default=0.1',
            '"--learning_rate", type=float, default=0.08',
        ),
        Edit("train/train.py", "default=0.08", "default=0.12"),
        Edit(config={"steps": "1200"}),
        Edit("train/train.py", "default=0.12", "default=0.09"),
        Edit(config={"steps": "2000"}),
        Edit("train/train.py", "default=0.09", "default=0.1"),
        Edit(config={"steps": "900"}),
    ),
    {"strategy": "alone"},
)
_MARATHON = Recorded(
    "marathon_mnist",
    (
        Edit("train/mnist.py", '"learning_rate", 0.002', '"learning_rate", 0.003'),
        Edit("train/mnist.py", '"learning_rate", 0.003', '"learning_rate", 0.004'),
        Edit(config={"train_steps": "900"}),
        Edit("train/mnist.py", '"learning_rate", 0.004', '"learning_rate", 0.001'),
        Edit(config={"train_steps": "2000"}),
        Edit(config={"tfdeploy:workers": "1"}),
        Edit("train/mnist.py", '"learning_rate", 0.001', '"learning_rate", 0.002'),
    ),
    {"name": "mnist", "data_dir": "data", "train_steps": "300", "tfdeploy:workers": "2", "tfdeploy:ps": "1"},
)
_YAML = Recorded(
    "mnist_yaml",
    (
        Edit("train/train.py", "RATE = 0.5", "RATE = 0.4"),
        Edit("train/train.py", "RATE = 0.4", "RATE = 0.6"),
        Edit("Pulumi.yaml", '"--data=mnist.npz"]', '"--data=mnist.npz", "--steps=400"]'),
        Edit("train/train.py", "RATE = 0.6", "RATE = 0.3"),
        Edit("Pulumi.yaml", "--steps=400", "--steps=800"),
        Edit("train/train.py", "RATE = 0.3", "RATE = 0.5"),
    ),
    {"tfdeploy:workers": "2"},
)
_TFMESOS = Recorded(
    "tfmesos_plus",
    (
        Edit("mnist.py", "GradientDescentOptimizer(0.5)", "GradientDescentOptimizer(0.4)"),
        Edit("mnist.py", "GradientDescentOptimizer(0.4)", "GradientDescentOptimizer(0.6)"),
        Edit("mnist.py", "BATCH = 100", "BATCH = 128"),
        Edit(config={"tfdeploy:env": {"STEPS": "1200"}}),
        Edit("mnist.py", "GradientDescentOptimizer(0.6)", "GradientDescentOptimizer(0.3)"),
        Edit("mnist.py", "BATCH = 128", "BATCH = 100"),
    ),
    {"client": "mnist.py", "tfdeploy:ps": "1", "tfdeploy:workers": "2"},
)
PROGRAMS = (_MNIST, _TFJOB, _MARATHON, _YAML, _TFMESOS)


def _with_project_file(program: Path, folder: Path) -> Path:
    """A copy of a program that has a Pulumi.yaml; that of `programs/mnist` is at the root of the repository."""
    if (program / "Pulumi.yaml").exists():
        return program
    copy = folder / f"{program.name}-source"
    shutil.copytree(program, copy)
    text = (ROOT.parent / "Pulumi.yaml").read_text()
    (copy / "Pulumi.yaml").write_text("".join(line for line in text.splitlines(True) if not line.startswith("main:")))
    return copy


def _apply(made: Project, edit: Edit) -> None:
    made.configure(edit.config)
    if edit.file:
        path = made.folder / edit.file
        text = path.read_text()
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.file} has {edit.old!r} {text.count(edit.old)} times")
        path.write_text(text.replace(edit.old, edit.new))


def _record(place: Workplace, recorded: Recorded, conditions: str) -> dict[str, Any]:
    source = _with_project_file(_PROGRAMS / recorded.program, place.folder)
    before = {*_receipts(place)}
    with project(place, source, recorded.program, recorded.config) as made:
        for edit in (Edit(), *recorded.edits):
            _apply(made, edit)
            seconds = made.pulumi(*UP)
            log(f"{recorded.program}: {edit.new or dict(edit.config) or 'as it is'}: {seconds:.1f} s")
    paths = [path for path in _receipts(place) if path not in before]
    receipts = [{"run": path.stem, **json.loads(path.read_text())} for path in paths]
    receipts.sort(key=lambda receipt: receipt["outcome"]["submitted"])
    return {"program": recorded.program, "backend": "local", "conditions": conditions, "receipts": receipts}


def _receipts(place: Workplace) -> list[Path]:
    return sorted((place.state / "tfdeploy" / "receipts").glob("*/*.json"))


def main(conditions: str) -> None:
    """Record all programs, and add them to the data."""
    if (load := os.getloadavg()[0]) > _BUSY:
        log(f"This machine is busy (load {load:.1f}): what is recorded now will scatter.")
    with workplace() as place:
        clusters = [_record(place, recorded, conditions) for recorded in PROGRAMS]
        text = json.dumps(clusters).replace(str(place.folder), "/bench")
    earlier = json.loads(DATA.read_text()) if DATA.exists() else []
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps([*earlier, *json.loads(text)], indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m bench.forecast_runs", description="Record runs for the score of the forecast."
    )
    parser.add_argument("conditions", help="under which they are recorded, in words")
    ending.watch()
    main(parser.parse_args().conditions)
