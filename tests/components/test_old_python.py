"""The agent travels into images with a Python of their own: it runs under the oldest that it promises to run under."""

import subprocess
from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tests.old_python import MISSING, old_python
from tfdeploy.backends.zipapp import application

OLD = old_python()
pytestmark = pytest.mark.skipif(not OLD, reason=MISSING)


def test_every_module_of_the_agent_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "agent.pyz").write_bytes(application())
    imports = (
        "import pkgutil, agent, importlib; "
        "names = [module.name for module in pkgutil.walk_packages(agent.__path__, 'agent.')]; "
        "[importlib.import_module(name) for name in names]; print(len(names) > 60)"
    )
    env = {"PYTHONPATH": str(tmp_path / "agent.pyz")}
    done = subprocess.run([OLD, "-S", "-c", imports], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_whole_job_runs_under_it(cluster: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdeploy.backends.local.task_runner._PYTHON", (OLD, "-I", "-S"))
    cluster.up(WAITS, command=[OLD, "program.py"], ps=1, workers=1, jobs={"worker": {"memory": "1GiB"}})
    cluster.until_running("ps-0", "worker-0")
    cluster.kill("controller")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["stopped (run finished)", "succeeded"]
