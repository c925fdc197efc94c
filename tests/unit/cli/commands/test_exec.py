"""Which part of the command line is the command that runs in the task."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cli.calling import invoke
from tfdeploy.cli.cluster_selection import ClusterQuery
from tfdeploy.cli.commands import exec as exec_command
from tfdeploy.errors import SpecError


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The selected cluster, the task and the command of each call."""
    calls: list[Any] = []
    queries: list[str] = []

    def select(query: ClusterQuery) -> SimpleNamespace:
        queries.append(query.cluster)
        return SimpleNamespace(cluster=cluster_ref("local", "/nowhere"))

    def execute(_: object, hostname: str, command: list[str]) -> int:
        calls.append((queries[-1], hostname, command))
        return 0

    monkeypatch.setattr(exec_command, "select_existing_cluster", select)
    monkeypatch.setattr(exec_command, "access", lambda _: SimpleNamespace(execute=execute))
    return calls


@pytest.mark.parametrize("dashes", [[], ["--"]])
@pytest.mark.parametrize("command", [["python", "-i", "x.py"], ["ls", "-t", "-c"], ["sh", "--", "-c", "--cluster"]])
def test_options_after_the_task_belong_to_the_command(
    executed: list[Any], command: list[str], dashes: list[str], tmp_path: Path
) -> None:
    options = ["--cwd", str(tmp_path), "-i", "--cluster", "mnist"]
    done = invoke(["exec", *options, "worker-0", *dashes, *command])
    assert done.exit_code == 0, done.stdout
    assert executed == [("mnist", "worker-0", command)]


@pytest.mark.parametrize("command", [["--cluster", "mnist", "--", "ls"], ["--"]])
def test_an_option_of_ours_after_the_task_is_refused(executed: list[Any], command: list[str]) -> None:
    done = invoke(["exec", "worker-0", *command])
    assert isinstance(done.exception, SpecError)
    assert "Use: tfdeploy exec [OPTIONS] worker-0 -- COMMAND." in str(done.exception)
    assert executed == []
