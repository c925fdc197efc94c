"""The agent travels into images with a Python of their own: it runs under the oldest that it promises to run under."""

import pytest

from tests.components.conftest import WAITS, Standing
from tests.old_python import MISSING, old_python

OLD = old_python()
pytestmark = pytest.mark.skipif(not OLD, reason=MISSING)


def test_a_whole_job_runs_under_it(cluster: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfdeploy.backends.local.task_runner._PYTHON", (OLD, "-I", "-S"))
    cluster.run(WAITS, command=[OLD, "program.py"], ps=1, workers=1, jobs={"worker": {"memory": "1GiB"}})
    cluster.kill("controller")
    cluster.open("worker-0")
    seen = cluster.until_state("succeeded")
    assert [row["status"] for row in seen.tasks] == ["stopped (run finished)", "succeeded"]
