"""A task that is a job of a batch system with a time limit: the job is queued again, and the run goes on."""

from pathlib import Path

import pytest

from tests.integration.conftest import WAITS
from tests.toy_backend.processes import JOB_SECONDS
from tests.toy_backend.project import ToyProject


def test_a_job_whose_time_is_over_is_queued_again_and_the_run_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = ToyProject(tmp_path)
    counter = f'env={{"COUNTER": {str(tmp_path / "counter")!r}}}'
    project.write(f'command=["python", "train.py"], code="code", workers=1, {counter}', WAITS)
    project.init()
    try:
        project.up(env={"TFDEPLOY_WAIT": "0", JOB_SECONDS: "10"})
        project.until_counts({"worker-0": 2})
        (tmp_path / "counter/.gate").touch()
        project.up(env={JOB_SECONDS: "10"})
        assert project.outputs()["state"] == "succeeded"
    finally:
        project.clean()
