"""What `leftovers` asks Pulumi, and what it removes."""

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from tfdeploy import registry
from tfdeploy.backends.base import Cluster, Found
from tfdeploy.cli import calls, leftovers
from tfdeploy.cli.asking import Asked
from tfdeploy.cli.calls import Call
from tfdeploy.errors import SpecError
from tfdeploy.outline import Outline
from tfdeploy.registry import Entry

STATE = '{"deployment": {"resources": []}}'


def cluster(name: str, project: str = "p", stack: str = "dev") -> Cluster:
    return {"backend": "docker", "project": project, "stack": stack, "name": name, "home": "unix:///d.sock"}


class World:
    """What is found, what Pulumi says, and what is removed."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.stderr = "error: no stack named 'dev' found"
        self.asked: list[tuple[tuple[str, ...], str]] = []
        self.cleared: list[str] = []
        self.taken: list[str] = []
        self.broken = ""

    def everywhere(self, *_: Any) -> tuple[list[Found], dict[Any, Any]]:
        return self.found, {}

    def pulumi(self, _: Path, *arguments: str, seconds: float, where: str) -> "subprocess.CompletedProcess[str]":
        self.asked.append((arguments, where))
        return subprocess.CompletedProcess(arguments, bool(self.stderr), STATE, self.stderr)

    def clear(self, one: Cluster, _token: str, _keep: Mapping[str, bool]) -> str:
        if one["name"] == self.broken:
            raise RuntimeError
        self.cleared.append(one["name"])
        return ""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///today")
    monkeypatch.setattr(leftovers, "everywhere", found.everywhere)
    monkeypatch.setattr(leftovers, "at_home", lambda _: True)
    monkeypatch.setattr(leftovers, "pulumi", found.pulumi)
    monkeypatch.setattr(leftovers, "load", lambda _: found)
    monkeypatch.setattr(leftovers, "take_away", lambda call, shown: found.taken.append(call.stack))
    (tmp_path / "Pulumi.yaml").write_text("name: p\n")
    return found


def known(world: World, folder: Path, one: Cluster, **about: Any) -> Entry:
    """A cluster that was made from here."""
    entry = replace(Entry(one, str(folder), Outline(tasks=()), login=f"file://{folder}"), **about)
    registry.write(entry)
    world.found.append(Found(one, {"volume": 1}))
    return entry


def delete(name: str = "", folder: Path = Path()) -> None:
    leftovers.leftovers(Asked(cwd=folder, cluster=name), delete=True, yes=True)


def test_pulumi_is_asked_where_the_stack_was_kept(world: World, tmp_path: Path) -> None:
    known(world, tmp_path, cluster("a"), organization="organization")
    delete()
    assert world.asked == [(("stack", "export", "--stack", "organization/p/dev"), f"file://{tmp_path}")]
    assert world.cleared == ["a"]


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
    about = {"ended": 1.0, "options": {"keep_volumes": "true"}} if kept else {"login": ""}
    known(world, tmp_path, cluster("a"), **about)
    delete()
    with pytest.raises(SpecError, match="--cluster p/dev/a"):
        delete("a")
    assert world.cleared == []
    delete("p/dev/a")
    assert world.cleared == ["a"]


def test_one_failure_does_not_keep_the_others(world: World, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        known(world, tmp_path, cluster(name))
    world.broken = "b"
    with pytest.raises(typer.Exit):
        delete()
    assert world.cleared == ["a", "c"]


def test_a_run_is_left_over_only_when_it_was_cut_short(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Call("run-1")
    has = frozenset({("docker", calls.PROJECT, "run-1", "run")})
    monkeypatch.setattr(leftovers, "clusters_of", lambda _: has)
    world.stderr = ""
    with call.begin():
        known(world, calls.home(), cluster("run", calls.PROJECT, "run-1"))
        delete()
        assert world.taken == []
    delete()
    assert (world.taken, world.cleared) == (["run-1"], [])
