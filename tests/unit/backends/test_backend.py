"""A backend by its name."""

import sys

import pytest

from tfdeploy.backends.backend import load
from tfdeploy.errors import SpecError
from tfdeploy.spec.backends import BACKENDS


def test_each_backend_is_found() -> None:
    assert all(load(name) is load(name) for name in BACKENDS)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tfdeploy.backends.docker")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(SpecError, match=r"needs the package docker, .* `make setup-docker` in a clone .*\[docker\]'"):
        load("docker")


@pytest.mark.parametrize(("platform", "shown"), [("darwin", "macOS"), ("win32", "Windows"), ("freebsd14", "freebsd14")])
def test_local_needs_linux(platform: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(
        SpecError, match=f"backend: 'local' needs Linux, and this is {shown}. Run the tasks as containers"
    ):
        load("local")
    load("docker")
