"""GPUs are each task's own; what this machine cannot give is refused."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tfdeploy.backends.local import planner
from tfdeploy.errors import PlacementError
from tfdeploy.plan.scheduler import Machine

SHOWS_GPUS = "import os\nprint(repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the GPUs 0 and 3."""
    machine = Machine("box", "Master", "local", "", 8.0, 64 * 1024**3, ("0", "3"))
    monkeypatch.setattr(planner, "this_machine", lambda: machine)


@pytest.mark.usefixtures("two_gpus")
def test_each_task_has_gpus_of_its_own(cluster: Standing) -> None:
    cluster.up(SHOWS_GPUS, chief=1, workers=2, success="all-workers", jobs={"worker": {"gpus": 1}})
    seen = cluster.until_state("succeeded")
    names = ("chief-0", "worker-0", "worker-1")
    assert [cluster.output(hostname) for hostname in names] == [b"''\n", b"'0'\n", b"'3'\n"]
    assert {row["machine"] for row in seen.tasks} == {"box"}


@pytest.mark.usefixtures("two_gpus")
def test_a_task_keeps_its_gpu_when_another_job_is_added(cluster: Standing) -> None:
    cluster.declare(SHOWS_GPUS, workers=1, jobs={"worker": {"gpus": 1}})
    cluster.stand_tasks()
    cluster.declare(SHOWS_GPUS, chief=1, workers=1, jobs={"chief": {"gpus": 1}, "worker": {"gpus": 1}})
    assert {task.hostname: task.gpus for task in cluster.plan.tasks} == {"chief-0": ("3",), "worker-0": ("0",)}


def test_the_gpus_that_the_shell_allows_are_those_of_the_machine(
    cluster: Standing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '0, GPU-a\\n1, GPU-b\\n2, GPU-c\\n3, GPU-d\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-c,3")
    jobs = {"worker": {"gpus": 1}}
    cluster.declare(SHOWS_GPUS, workers=2, jobs=jobs)
    assert [task.gpus for task in cluster.plan.tasks] == [("GPU-c",), ("3",)]
    with pytest.raises(PlacementError, match=r"0 of 2 gpus \(CUDA_VISIBLE_DEVICES='GPU-c,3'\)"):
        cluster.declare(SHOWS_GPUS, workers=3, jobs=jobs)


@pytest.mark.usefixtures("two_gpus")
def test_two_clusters_with_open_runs_share_no_gpu(clusters: Callable[[str], Standing]) -> None:
    first, second = clusters("first"), clusters("second")
    jobs = {"worker": {"gpus": 1}}
    first.run(WAITS, workers=1, jobs=jobs)
    second.declare(SHOWS_GPUS, workers=1, jobs=jobs)
    assert [task.gpus for task in second.plan.tasks] == [("3",)]
    with pytest.raises(PlacementError, match=r"0 of 1 gpus \(first-\w+ has GPU 0\)"):
        second.declare(SHOWS_GPUS, workers=2, jobs=jobs)
    first.finish()
    second.declare(SHOWS_GPUS, workers=2, jobs=jobs)
    assert [task.gpus for task in second.plan.tasks] == [("0",), ("3",)]


@pytest.mark.usefixtures("two_gpus")
def test_two_clusters_of_one_program_share_no_gpu(
    clusters: Callable[[str], Standing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = type("Monitor", (), {})()
    monkeypatch.setattr("pulumi.runtime.settings.get_monitor", lambda: monitor)
    for name, gpu in (("first", "0"), ("second", "3")):
        cluster = clusters(name)
        cluster.declare(SHOWS_GPUS, workers=1, jobs={"worker": {"gpus": 1}})
        cluster.validate()
        assert [task.gpus for task in cluster.plan.tasks] == [(gpu,)]


@pytest.mark.parametrize("setting", ["cpus", "memory"])
def test_what_this_machine_does_not_have_is_refused(cluster: Standing, setting: str) -> None:
    machine = planner.this_machine()
    half = {"cpus": machine.cpus * 0.6, "memory": int(machine.memory * 0.6)}[setting]
    cluster.declare(SHOWS_GPUS, workers=1, jobs={"worker": {setting: half}})
    with pytest.raises(PlacementError, match=r"worker-1: asks for .* and no machine has that free"):
        cluster.declare(SHOWS_GPUS, workers=2, jobs={"worker": {setting: half}})
