"""A few rounds of random faults; `python -m tests.chaos` plays more of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.fixtures import WITHOUT
from tests.integration.conftest import ROOT


def play(log: Path, *options: str) -> None:
    """Play rounds in a process of its own; fails the test with all that it printed when an invariant is broken."""
    command = [sys.executable, "-m", "tests.chaos", "--log", str(log), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(entry.get("done") for entry in entries), "no fault happened"


@pytest.mark.full
@pytest.mark.parametrize("number", [3, 4])
def test_local_rounds_keep_every_invariant(tmp_path: Path, number: int) -> None:
    play(tmp_path / "log", "--backend=local", "--seed=1", f"--first={number}", "--rounds=1")


@pytest.mark.full
def test_a_round_on_docker_keeps_every_invariant(tmp_path: Path, engine: str) -> None:
    play(tmp_path / "log", "--backend=docker", "--seed=1", "--first=4", "--rounds=1")


@pytest.mark.full
def test_a_round_on_kubernetes_keeps_every_invariant(tmp_path: Path) -> None:
    if os.environ.get(WITHOUT):
        pytest.skip(f"needs containers, and {WITHOUT} is set")
    play(tmp_path / "log", "--backend=kubernetes", "--seed=2", "--first=2", "--rounds=1")
