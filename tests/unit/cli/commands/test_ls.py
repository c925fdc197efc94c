"""All clusters of a user in one table."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clusters import cluster_ref
from tests.unit.cli.calling import registered, said
from tests.unit.report.test_update_wait import sight
from tests.unit.simulation import running
from tfdeploy.agent.record.record import RecordView
from tfdeploy.backends.base import ClusterRef, ObservedState
from tfdeploy.cli import snapshot
from tfdeploy.errors import Unreachable

MINE, OTHER = "file:///mine", "file:///other"
LONG = "a-rather-long-name-of-one-cluster"


@pytest.fixture
def see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ObservedState | Exception]:
    """Clusters' ids to what is observed of them."""
    seen: dict[str, ObservedState | Exception] = {}

    class Runner:
        def observe(self, cluster: ClusterRef, token: str, query: object) -> ObservedState:
            result = seen[cluster["id"]]
            if isinstance(result, Exception):
                raise result
            return result

    class Backend:
        runner = Runner()

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PULUMI_BACKEND_URL", MINE)
    monkeypatch.setattr(snapshot, "load", lambda name: Backend())
    monkeypatch.setattr(snapshot, "is_locked", lambda *_: False)
    monkeypatch.setattr(time, "time", lambda: 10_000.0)
    return seen


def entry(cluster_id: str, name: str, begun: float = 2_800.0, login: str = MINE, ended: float = 0.0) -> None:
    cluster = cluster_ref("local", "/nowhere", name=name, cluster_id=cluster_id)
    registered(cluster, {"workers": 1}, begun=begun, login=login, ended=ended)


def trains(cost: bool = False) -> ObservedState:
    return replace(sight(running(workers=1)), cost={"spent": 0.35, "per_hour": None} if cost else None)


Seen = dict[str, ObservedState | Exception]


def test_clusters_have_state_backend_age_and_cost(see: Seen) -> None:
    entry("a", "mnist")
    entry("b", LONG, begun=1.0)
    see |= {"a": trains(cost=True), "b": Unreachable("the engine is off")}
    shown, notes = said("ls")
    assert [line.split() for line in shown.splitlines()] == [
        ["CLUSTER", "BACKEND", "STATE", "AGE", "SPENT", "PER", "HOUR"],
        ["p/dev/mnist", "local", "running", "2", "hours", "$0.35", "unknown"],
        [f"p/dev/{LONG}", "local", "unknown", "2", "hours"],
    ]
    assert notes == f"p/dev/{LONG}: the engine is off\n"


def test_what_is_gone_is_shown_on_request(see: Seen) -> None:
    entry("a", "mnist")
    entry("b", "old", ended=5.0)
    see["a"] = ObservedState(1.0, RecordView(1.0), 0.0, {})
    shown, notes = said("ls")
    assert "There are no clusters that you have created from this computer." in shown
    assert notes == "Not shown: 1 of which nothing exists any more. `tfdeploy ls --all` shows them.\n"
    states = {row["name"]: row["state"] for row in json.loads(said("ls", "--all", "--json")[0])}
    assert states == {"mnist": "gone", "old": "destroyed"}


def test_another_logins_cluster_is_shown_with_the_id_that_selects_it(see: Seen) -> None:
    entry("a", "mnist", login=OTHER)
    see["a"] = trains()
    shown, notes = said("ls")
    assert "p/dev/mnist" in shown
    assert "use --cwd /program --stack dev --cluster a." in notes
    assert OTHER in notes
