"""Lint, format and types: what `make check` calls, beside the other tests."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_lint_format_and_types() -> None:
    done = subprocess.run([ROOT / "tools" / "check"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
