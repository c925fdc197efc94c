"""A backend by its name."""

import sys
import threading
from importlib import import_module
from typing import Any

import pytest

from tfdeploy.backends.backend import load, preload
from tfdeploy.cli.cluster_selection import search_places
from tfdeploy.errors import SpecError
from tfdeploy.spec.backends import BACKENDS


@pytest.mark.parametrize("name", BACKENDS)
def test_each_is_found(name: str) -> None:
    assert load(name) is load(name)


def test_an_unknown_one_is_refused() -> None:
    with pytest.raises(SpecError, match=r"'swarm' is unknown. It takes one of: local, docker"):
        load("swarm")


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tfdeploy.backends.docker")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(SpecError, match=r"needs the package docker, .* `make setup-docker` in a clone .*\[docker\]'"):
        load("docker")


def test_two_threads_import_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once get half of a module where a package is missing."""
    both = threading.Barrier(2)

    def imported(name: str) -> Any:
        with pytest.raises(threading.BrokenBarrierError):
            both.wait(0.2)
        raise ModuleNotFoundError("No module named 'docker'", name="docker")

    monkeypatch.setattr("tfdeploy.backends.backend.importlib.import_module", imported)
    found, errors = search_places([("docker", ""), ("ec2", "")], 10)
    assert found == []
    assert [type(error) for error in errors.values()] == [SpecError, SpecError]


@pytest.mark.parametrize(("platform", "shown"), [("darwin", "macOS"), ("win32", "Windows"), ("freebsd14", "freebsd14")])
def test_local_needs_linux(platform: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(
        SpecError, match=f"backend: 'local' needs Linux, and this is {shown}. Run the tasks as containers"
    ):
        load("local")
    load("docker")


def test_a_package_that_is_missing_does_not_keep_the_others_from_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def imported(name: str) -> Any:
        loaded.append(name)
        if "docker" in name:
            raise ModuleNotFoundError("No module named 'docker'", name="docker")
        return import_module(name)

    monkeypatch.setattr("tfdeploy.backends.backend.importlib.import_module", imported)
    preload(["docker", "local"])
    assert loaded == ["tfdeploy.backends.docker.backend", "tfdeploy.backends.local.backend"]


def test_the_time_limit_of_a_search_is_for_the_backends_and_not_for_their_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first: dict[str, threading.Thread] = {}

    def imported(name: str) -> Any:
        first.setdefault(name, threading.current_thread())
        return import_module(name)

    monkeypatch.setattr("tfdeploy.backends.backend.importlib.import_module", imported)
    search_places([("local", ""), ("docker", "unix:///none.sock")], 30.0)
    assert {first[BACKENDS[name].module] for name in ("local", "docker")} == {threading.main_thread()}
