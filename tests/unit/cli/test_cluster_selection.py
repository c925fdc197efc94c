"""Which clusters a command is about, where several have the same project, stack and name."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tests.unit.cli.calling import program, registered
from tfdeploy import registry
from tfdeploy.backends.base import ClusterRef, DiscoveredCluster
from tfdeploy.cli import cluster_selection
from tfdeploy.cli.cluster_selection import ClusterQuery, select_cluster, select_clusters, select_existing_cluster
from tfdeploy.errors import BackendError, NotFound
from tfdeploy.registry import Entry

ADA, BEN = "file:///of-ada", "file:///of-ben"


def entry(cluster_id: str, begun: float, login: str = ADA, ended: float = 0.0) -> Entry:
    return registered(cluster_ref(cluster_id=cluster_id), begun=begun, login=login, ended=ended)


class Engine:
    """What a search finds, or why it finds nothing."""

    def __init__(self) -> None:
        self.clusters: list[ClusterRef] = []
        self.error: Exception | None = None

    def search_places(self, places: Sequence[Any], _: float) -> tuple[list[DiscoveredCluster], dict[Any, Exception]]:
        if self.error:
            return [], dict.fromkeys(places, self.error)
        return [DiscoveredCluster(cluster, {"service": 1}) for cluster in self.clusters], {}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()
    program(tmp_path, monkeypatch, "file:///of-somebody-else")
    monkeypatch.setattr(cluster_selection, "search_places", made.search_places)
    return made


def selected(cluster: str = "") -> list[str]:
    return [entry.cluster["id"] for entry in select_clusters(ClusterQuery(stack="dev", cluster=cluster))]


def test_clusters_of_two_logins_are_both_listed_and_an_id_selects_one(engine: Engine) -> None:
    entry("ada1", 1.0), entry("ben1", 2.0, BEN)
    assert selected() == selected("mnist") == ["ada1", "ben1"]
    assert selected("ben1") == ["ben1"]
    with pytest.raises(NotFound) as error:
        select_cluster(ClusterQuery(stack="dev"))
    message = str(error.value)
    assert "mnist (ada1, stack in file:///of-ada), mnist (ben1, stack in file:///of-ben)" in message
    assert message.endswith("Choose one: --cluster ada1.")


def test_a_command_is_never_about_another_logins_cluster_while_there_is_one_of_its_own(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = entry("ada1", 1.0)
    entry("ben1", 2.0, BEN)
    monkeypatch.setenv("PULUMI_BACKEND_URL", ADA)
    assert selected() == selected("mnist") == ["ada1"]
    assert selected("ben1") == ["ben1"]
    registry.write(replace(mine, ended=3.0))
    assert selected() == ["ada1"], "destroyed meanwhile"
    with pytest.raises(NotFound, match="was destroyed"):
        select_existing_cluster(ClusterQuery(stack="dev"))


def test_a_cluster_of_another_project_is_selected_as_project_stack_and_name(engine: Engine, tmp_path: Path) -> None:
    entry("ada1", 1.0)
    (tmp_path / "Pulumi.yaml").write_text("name: another\n")
    for remove in (False, True):
        if remove:
            (tmp_path / "Pulumi.yaml").unlink()
        with pytest.raises(NotFound):
            select_clusters(ClusterQuery(cluster="mnist"))
        assert select_cluster(ClusterQuery(cluster="p/dev/mnist")).cluster["id"] == "ada1"


def test_what_changes_another_logins_cluster_needs_its_id(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    entry("ben1", 2.0, BEN)
    monkeypatch.setenv("PULUMI_BACKEND_URL", ADA)
    assert selected() == ["ben1"]
    with pytest.raises(NotFound, match=r"is in file:///of-ben, and you are logged in to .*use --cluster ben1"):
        select_existing_cluster(ClusterQuery(stack="dev"))
    assert select_existing_cluster(ClusterQuery(stack="dev", cluster="ben1")).cluster["id"] == "ben1"


def test_another_logins_cluster_is_selected_by_the_hints_id_from_any_folder(engine: Engine, tmp_path: Path) -> None:
    entry("ben1", 1.0, BEN)
    (tmp_path / "Pulumi.yaml").unlink()
    with pytest.raises(NotFound, match=r"Other clusters: p/dev/mnist. `--cluster ben1` selects the first"):
        select_clusters(ClusterQuery())
    assert select_existing_cluster(ClusterQuery(cluster="ben1")).cluster["id"] == "ben1"
    (tmp_path / "Pulumi.yaml").write_text("name: another\n")
    assert select_existing_cluster(ClusterQuery(cluster="ben1")).cluster["id"] == "ben1"


def test_an_update_that_was_cancelled_before_it_created_anything_makes_no_name_ambiguous(engine: Engine) -> None:
    cancelled, current = entry("cancelled", 1.0), entry("current", 2.0)
    assert selected() == ["current"]
    engine.clusters = [cancelled.cluster, current.cluster]
    assert selected() == ["cancelled", "current"], "of a lost state it still runs"
    engine.clusters, engine.error = [], BackendError("the engine does not respond")
    assert selected() == ["cancelled", "current"], "that is not known"


def test_of_the_destroyed_clusters_of_a_stack_the_last_is_shown(engine: Engine) -> None:
    first, last = entry("first", 1.0, ended=1.5), entry("last", 2.0, ended=2.5)
    assert selected() == ["last"]
    registry.write(replace(first, ended=0.0))
    assert selected() == ["first"]
    assert last.ended


@pytest.mark.parametrize("stack", ["dev", "acme/p/dev"])
def test_pulumi_stack_selects_as_in_pulumi(engine: Engine, monkeypatch: pytest.MonkeyPatch, stack: str) -> None:
    for name in ("dev", "prod"):
        registered(cluster_ref(stack=name, cluster_id=f"in-{name}"), login=ADA)
    monkeypatch.setenv("PULUMI_STACK", stack)
    assert select_cluster(ClusterQuery()).cluster["id"] == "in-dev"
    assert select_cluster(ClusterQuery(stack="prod")).cluster["id"] == "in-prod"
    assert select_cluster(ClusterQuery(cluster="in-prod")).cluster["id"] == "in-prod"
    assert cluster_selection.current_stack(ClusterQuery())[1] == "dev"
