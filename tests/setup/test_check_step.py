"""What `make check` needs is installed without TensorFlow and without Pulumi's engine."""

import sys
from typing import Any

import pytest

from tests.setup.test_lockfile import packages
from tools.provision import engine
from tools.provision import packages as pip
from tools.provision.__main__ import main


def test_it_installs_packages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[Any] = []
    monkeypatch.setattr(pip, "install", lambda root, venv, extras: installed.append(extras))
    monkeypatch.setattr(engine, "ensure", lambda root: pytest.fail("the engine was asked for"))
    monkeypatch.setattr(sys, "argv", ["provision", "check"])
    assert main() == 0
    assert not {"tensorflow", "tensorflow-cpu", "pulumi-aws"} & packages(*installed[0])
