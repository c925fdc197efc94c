"""What `leftovers` asks Pulumi, and what it removes."""

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import cluster_ref
from tfdeploy import registry
from tfdeploy.backends.base import ClusterRef, DiscoveredCluster
from tfdeploy.cli.cluster_selection import ClusterQuery
from tfdeploy.cli.commands import leftovers
from tfdeploy.cli.run import stack
from tfdeploy.cli.run.stack import Call
from tfdeploy.errors import NotFound, SpecError
from tfdeploy.registry import Entry
from tfdeploy.report.expected_state import ExpectedState

CLEANUP = "pulumi-python:dynamic/tfdeploy:Cleanup"
STATE = '{"deployment": {"resources": []}}'


def cluster(name: str, project: str = "p", stack: str = "dev") -> ClusterRef:
    return cluster_ref(project=project, stack=stack, name=name, cluster_id=f"{project}{stack}{name}")


class World:
    """What is found, what Pulumi says, and what is removed."""

    def __init__(self) -> None:
        self.found: list[DiscoveredCluster] = []
        self.runner = self
        self.stderr = "error: no stack named 'dev' found"
        self.asked: list[tuple[tuple[str, ...], str]] = []
        self.cleared: list[str] = []
        self.taken: list[str] = []
        self.broken = ""
        self.stacks: dict[str, ClusterRef] = {}
        """The other stacks of the project, each with a cluster."""

    def search_places(self, *_: Any) -> tuple[list[DiscoveredCluster], dict[Any, Any]]:
        return self.found, {}

    def pulumi(self, _: Path, *arguments: str, seconds: float, backend_url: str) -> "subprocess.CompletedProcess[str]":
        self.asked.append((arguments, backend_url))
        if arguments[:2] == ("stack", "ls"):
            return subprocess.CompletedProcess(arguments, 0, json.dumps([{"name": name} for name in self.stacks]), "")
        if arguments[-1] in self.stacks:
            cleanup = {"type": CLEANUP, "inputs": {"cluster": self.stacks[arguments[-1]]}}
            return subprocess.CompletedProcess(arguments, 0, json.dumps({"deployment": {"resources": [cleanup]}}), "")
        return subprocess.CompletedProcess(arguments, bool(self.stderr), STATE, self.stderr)

    def delete_all(self, one: ClusterRef, _token: str, _keep: Mapping[str, bool]) -> str:
        if one["name"] == self.broken:
            raise RuntimeError
        self.cleared.append(one["name"])
        return ""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///today")
    monkeypatch.setattr(leftovers, "search_places", found.search_places)
    monkeypatch.setattr(leftovers, "in_this_state_folder", lambda _: True)
    monkeypatch.setattr(leftovers, "pulumi", found.pulumi)
    monkeypatch.setattr(leftovers, "load", lambda _: found)
    monkeypatch.setattr(leftovers, "remove_cluster", lambda call, verbose: found.taken.append(call.stack))
    (tmp_path / "Pulumi.yaml").write_text("name: p\n")
    return found


def known(world: World, folder: Path, one: ClusterRef, **about: Any) -> None:
    registry.write(Entry(one, str(folder), ExpectedState(tasks=()), **{"login": f"file://{folder}", **about}))
    world.found.append(DiscoveredCluster(one, {"volume": 1}))


def delete(name: str = "", folder: Path = Path()) -> None:
    leftovers.leftovers(ClusterQuery(cwd=folder, cluster=name), delete=True, yes=True)


def test_pulumi_is_asked_where_the_stack_was_kept(world: World, tmp_path: Path) -> None:
    known(world, tmp_path, cluster("a"), organization="organization")
    delete()
    export, others = ("stack", "export", "--stack", "organization/p/dev"), ("stack", "ls", "--json")
    assert world.asked == [(export, f"file://{tmp_path}"), (others, f"file://{tmp_path}")]
    assert world.cleared == ["a"]


@pytest.mark.parametrize(("other", "deleted"), [("a", []), ("b", ["a"])])
def test_a_cluster_whose_stack_was_renamed_is_not_left_over(
    other: str, deleted: list[str], world: World, tmp_path: Path
) -> None:
    """The registry has the old name until the next update."""
    known(world, tmp_path, cluster("a"))
    world.stacks["renamed"] = {**cluster(other), "stack": "renamed"}
    delete()
    assert world.cleared == deleted


def test_another_cluster_of_the_same_words_is_unknown(world: World, tmp_path: Path) -> None:
    known(world, tmp_path, cluster("a"))
    world.found.append(DiscoveredCluster({**cluster("a"), "id": "of-a-colleague"}, {"volume": 1}))
    delete()
    assert world.cleared == ["a"]
    with pytest.raises(NotFound, match=r"several clusters: .*\(pdeva\).* Use the id of one"):
        delete("p/dev/a")
    delete("of-a-colleague")
    assert world.cleared == ["a", "a"]


def test_a_reason_is_printed_once(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    same_words: ClusterRef = {**cluster("a"), "id": "x"}
    world.found += [DiscoveredCluster(one, {"volume": 1}) for one in (cluster("a"), cluster("b"), same_words)]
    leftovers.leftovers(ClusterQuery())
    shown = capsys.readouterr().out
    assert "\np/dev/a, p/dev/b (unknown): it was not created with this state folder" in shown
    assert shown.count("it was not created") == 1


def test_a_folder_that_holds_another_project_now_says_nothing_of_the_cluster(world: World, tmp_path: Path) -> None:
    known(world, tmp_path, cluster("a"))
    (tmp_path / "Pulumi.yaml").write_text("name: q\n")
    world.stderr = ""
    delete()
    assert world.asked == []
    assert world.cleared == []


def test_a_failure_without_words_is_no_answer(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: Any, **__: Any) -> None:
        raise AssertionError

    known(world, tmp_path, cluster("a"))
    monkeypatch.setattr(leftovers, "pulumi", silent)
    delete()
    assert world.cleared == []


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_kept_or_unknown_goes_only_by_its_full_name(kept: bool, world: World, tmp_path: Path) -> None:
    about = {"ended": 1.0, "options": {"container": '{"retain_volumes": true}'}} if kept else {"login": ""}
    known(world, tmp_path, cluster("a"), **about)
    delete()
    with pytest.raises(SpecError, match="--cluster p/dev/a"):
        delete("a")
    assert world.cleared == []
    delete("p/dev/a")
    assert world.cleared == ["a"]


def test_retained_volumes_are_listed_with_the_id_and_the_command(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known(world, tmp_path, cluster("a"), ended=1.0)
    unnamed: ClusterRef = {**world.found[0].cluster, "project": "?", "stack": "?"}
    world.found[0] = DiscoveredCluster(unnamed, {"volume": 1})
    leftovers.leftovers(ClusterQuery())
    lines = capsys.readouterr().out.splitlines()
    assert "p/dev/a (pdeva) has 1 volume on docker: `destroy` has retained its volumes (`retain_volumes`)." in lines
    assert "`tfdeploy ls --leftovers --delete --cluster pdeva` deletes them." in lines


def test_one_failure_does_not_keep_the_others(world: World, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        known(world, tmp_path, cluster(name))
    world.broken = "b"
    with pytest.raises(SystemExit):
        delete()
    assert world.cleared == ["a", "c"]


def test_a_run_is_left_over_only_when_it_was_cut_short(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Call("run-1")
    has = frozenset({("docker", f"{stack.PROJECT}run-1run")})
    monkeypatch.setattr(leftovers, "clusters_in", lambda _: has)
    world.stderr = ""
    with call.begin():
        known(world, stack.home(), cluster("run", stack.PROJECT, "run-1"))
        delete()
        assert world.taken == []
    delete()
    assert (world.taken, world.cleared) == (["run-1"], [])


def test_the_question_says_whose_it_is_and_how_old(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known(world, tmp_path, cluster("a"), ended=1.0)
    created = time.time() - 2 * 86400
    world.found[0] = world.found[0]._replace(since=created, cluster={**world.found[0].cluster, "owner": "ben@lab"})
    monkeypatch.setattr(leftovers, "ask_to_confirm", lambda *_: None)
    leftovers.leftovers(ClusterQuery(cwd=tmp_path), delete=True)
    assert world.cleared == []
    leftovers.leftovers(ClusterQuery(cwd=tmp_path, cluster="p/dev/a"), delete=True)
    asked = capsys.readouterr().err
    assert "p/dev/a (pdeva) on docker: 1 volume, created 2 days ago, owner ben@lab (unknown: it was created" in asked
    assert world.cleared == ["a"]
