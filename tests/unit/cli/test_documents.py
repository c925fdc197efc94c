"""The members that `--json` prints are those of the types that docs/json.md is made from."""

from types import SimpleNamespace
from typing import Any, cast, get_type_hints

from tests.unit.props import cluster
from tfdeploy.agent.model.events import Event
from tfdeploy.agent.model.run_state import Ended, RunResult
from tfdeploy.agent.record.progress import Progress
from tfdeploy.cli.commands import dump, status
from tfdeploy.cli.commands.ls import ClusterSummary
from tfdeploy.report.events import document
from tfdeploy.report.report import Report
from tools.documents import ClusterIdentity, ClusterOutputs, DumpedTask, Exit, ListedCluster, ResultReason, StepProgress

IDENTITY = {*get_type_hints(ClusterIdentity)}


def members(kind: type) -> set[str]:
    return {*get_type_hints(kind)}


def test_a_cluster_has_the_outputs_that_are_public_and_no_other_member_of_its_report() -> None:
    report = SimpleNamespace(**dict.fromkeys(Report.__dataclass_fields__))
    printed = status.to_dict(cast(Any, SimpleNamespace(report=report, entry=SimpleNamespace(cluster=cluster()))))
    assert {*printed} == IDENTITY | members(ClusterOutputs)
    assert (printed["id"], "home" in printed) == (cluster()["id"], False)


def test_a_cluster_in_the_list_of_all() -> None:
    entry = SimpleNamespace(cluster=cluster(), created=0.0, begun=1.0, ended=0.0, login="", folder="")
    assert {*ClusterSummary(cast(Any, entry), "running").to_dict()} == IDENTITY | members(ListedCluster)


def test_a_dumped_task() -> None:
    printed = dump._to_dict("worker-0", "running", Progress(), None)
    assert ({*printed}, {*printed["progress"]}) == (members(DumpedTask), members(StepProgress))


def test_how_a_run_and_a_program_have_ended() -> None:
    end = Ended(3)
    printed = document(Event("run_ended", exit=end, result=RunResult("failed", "", 1.0, exit=end)))
    assert {*printed["exit"]} == {*printed["result"]["exit"]} == members(Exit)
    assert {*printed["result"]} == members(RunResult) | members(ResultReason)
    assert {"at", "kind", "task", "attempt", "reason", "sentence"} <= {*printed}
