"""A stand-in for TensorBoard beside real tasks: who starts it with what, what it outlives, what ends it."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests.components.conftest import WAITS, Standing
from tests.components.processes import alive
from tests.waiting import until
from tfdeploy.backends.local.validate import refuse_packages
from tfdeploy.errors import SpecError
from tfdeploy.spec.cluster import cluster_spec

BOARD = "tensorboard-0"
STAND_IN = """
import json, os, pathlib, sys, time
here = pathlib.Path({folder!r})
(here / "asked.json").write_text(json.dumps([os.getpid(), os.getcwd(), *sys.argv[1:]]))
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package that tasks find: its folder."""
    package = tmp_path / "packages" / "tensorboard"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text(STAND_IN.format(folder=str(package)))
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return package


def asked(stand_in: Path) -> list[str]:
    """Its process id, its working directory, and its arguments."""

    def there() -> list[str]:
        found = stand_in / "asked.json"
        text = found.read_text() if found.exists() else ""
        return list(json.loads(text)) if text else []

    return until(there, "the stand-in was started")


def test_it_goes_on_after_the_job_until_the_cluster_is_cleared(cluster: Standing, stand_in: Path) -> None:
    cluster.up(WAITS, ps=1, workers=1, tensorboard=True)
    cluster.until_running("worker-0")
    cluster.until_status(BOARD, "running")
    cluster.open("worker-0")
    cluster.until_status("ps-0", "stopped (run finished)")
    pid, folder, *arguments = asked(stand_in)
    assert folder == "/"
    address = cluster.look().endpoints[BOARD]
    host, _, port = address.partition(":")
    assert arguments == ["--logdir", str(cluster.places.train), "--port", port, "--host", host]
    assert (cluster.look().state, cluster.status(BOARD), alive(int(pid))) == ("succeeded", "running", True)
    kept = cluster.kept(cluster.clear())
    assert not alive(int(pid))
    assert cluster.recorded_in(kept / "record").tasks[BOARD].state == "stopped"


def test_it_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    args = {"command": [sys.executable], "workers": 1, "tensorboard": True}
    refuse_packages(cluster_spec("test", args))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match="test: tensorboard: the package is not installed") as refusal:
        refuse_packages(cluster_spec("test", args))
    assert str(refusal.value).endswith("Install it: pip install tensorboard.")
    refuse_packages(cluster_spec("test", {**args, "tensorboard": False}))
    refuse_packages(cluster_spec("test", {**args, "requirements": ["TensorBoard>=2"]}))
