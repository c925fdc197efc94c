"""What tasks use, as a table and as JSON."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.clusters import cluster_ref
from tests.unit.cases import plan, spec
from tests.unit.report.test_wait import Looks, sight
from tests.unit.simulation import World
from tfdeploy import registry
from tfdeploy.backends.base import TaskUsage
from tfdeploy.cli import snapshot
from tfdeploy.cli.commands import top
from tfdeploy.cli.main import app
from tfdeploy.report.expected import expected_state


def test_each_task_has_its_use_where_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "Pulumi.yaml").write_text("name: p\n")
    made = World(workers=2)
    made.come()
    expected = expected_state(plan(workers=2), spec(workers=2))
    registry.write(registry.Entry(cluster_ref("local", "/nowhere"), str(tmp_path), expected, begun=1.0))
    monkeypatch.setattr(snapshot, "load", lambda name: Looks([sight(made)]))
    used = {"worker-0": TaskUsage(1.504, 3 << 29)}
    monkeypatch.setattr(top, "access", lambda backend: SimpleNamespace(usage=lambda cluster: used))
    arguments = ["top", "--cwd", str(tmp_path), "--stack", "dev"]
    lines = CliRunner().invoke(app, arguments).output.splitlines()
    assert lines[0].split() == ["HOSTNAME", "MACHINE", "STATUS", "CPUS", "MEMORY"]
    assert lines[1].split()[-4:] == ["running", "1.50", "1.5", "GiB"]
    assert lines[2].split()[-1] == "running"
    rows = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert [(row["cpus"], row["memory"]) for row in rows] == [(1.504, 3 << 29), (None, None)]
