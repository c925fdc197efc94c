"""What holds for the examples of every run holds for random ones too."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.examples import RANDOM

ROOT = Path(__file__).parents[3]


def seed_of_commit() -> int:
    """Each commit tries examples of its own, and tries the same ones again in each run."""
    tree = subprocess.run(["git", "rev-parse", "HEAD^{tree}"], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(tree.stdout[:8], 16)


@pytest.mark.full
def test_all_properties_hold_for_random_examples() -> None:
    seed = seed_of_commit()
    again = f"{RANDOM}=1 python -m pytest -m hypothesis --hypothesis-seed={seed} tests/unit"
    warnings.warn(f"random examples; the same ones again: {again}", stacklevel=1)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, *again.split()[2:], "--quiet", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, env={**env, RANDOM: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{again}\n{done.stdout[-8000:]}{done.stderr[-2000:]}"
    assert " passed" in done.stdout


def test_every_run_without_a_seed_tries_the_same_examples(tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    (tmp_path / "test_any.py").write_text(
        "from hypothesis import given, strategies as st\n"
        "from tests import examples\n"
        "@given(st.integers())\n"
        f"def test_any(number): open({str(tried)!r}, 'a').write(f'{{number}} ')\n"
    )

    def run(**env: str) -> list[str]:
        tried.write_text("")
        known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "test_any.py"]
        about = {**known, "PYTHONPATH": str(ROOT), **env}
        subprocess.run(command, cwd=tmp_path, env=about, capture_output=True, check=True)
        return tried.read_text().split()

    first = run()
    assert len(first) >= 50
    assert run() == first
    assert run(**{RANDOM: "1"})[: len(first)] != first
