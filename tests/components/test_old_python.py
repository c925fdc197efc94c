"""The agent travels into images with a Python of their own: it runs under the oldest that it promises to run under."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tfdeploy.application import application


def old_python() -> str:
    """A Python 3.8, from PATH or from pyenv; empty when there is none."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which("python3.8") or "", *map(str, sorted(versions.glob("3.8*/bin/python3.8")))]
    ask = "import ctypes, sys; print(sys.version_info[:2] == (3, 8))"
    for path in filter(None, found):
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.stdout.strip() == "True":
            return path
    return ""


OLD = old_python()
pytestmark = pytest.mark.skipif(not OLD, reason="there is no Python 3.8 here, neither on PATH nor of pyenv")


def test_every_module_of_the_agent_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "agent.pyz").write_bytes(application())
    imports = (
        "import pkgutil, agent, importlib; "
        "names = [module.name for module in pkgutil.iter_modules(agent.__path__)]; "
        "[importlib.import_module('agent.' + name) for name in names]; print(len(names) > 10)"
    )
    env = {"PYTHONPATH": str(tmp_path / "agent.pyz")}
    done = subprocess.run([OLD, "-S", "-c", imports], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_whole_job_runs_under_it(cluster: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdeploy.backends.local._python", lambda: [OLD, "-I", "-S"])
    cluster.up(WAITS, command=["python3", "program.py"], ps=1, workers=1, jobs={"worker": {"memory": "1GiB"}})
    cluster.until_running("ps-0", "worker-0")
    cluster.kill("keeper")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["stopped (job finished)", "succeeded"]
