"""`lint-imports` finds what tools/importlinter.ini forbids."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("file", "planted"),
    [
        ("", ""),
        ("spec/cluster.py", "from ..plan.plan import Plan"),
        ("spec/cluster.py", "import time"),
        ("plan/plan.py", "def f():\n    import pulumi"),
        ("agent/launch/launcher.py", "import tomllib"),
        ("agent/launch/launcher.py", "import tensorflow"),
        ("agent/control/reconcile.py", "from ...errors import SpecError"),
        ("backends/local/backend.py", "from ..docker import labels"),
        ("backends/ec2/watchdog/record_upload.py", "import boto3"),
        ("report/report.py", "import docker"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, file: str, planted: str) -> None:
    shutil.copytree(ROOT / "tfdeploy", tmp_path / "tfdeploy", ignore=shutil.ignore_patterns("__pycache__"))
    if file:
        with (tmp_path / "tfdeploy" / file).open("a") as module:
            module.write(f"\n{planted}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(
        [*command, str(ROOT / "tools" / "importlinter.ini")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == bool(planted), done.stdout
