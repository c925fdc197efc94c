"""Fixtures that several shelves share."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.box import aws_models
from tests.cli import browser as chromium
from tests.debian import NotInstalled
from tests.integration.conftest import Project

pytest_plugins = [
    "tests.engine.fixtures",
    "tests.box.fixtures",
    "tests.ec2.fixtures",
    "tests.kube.fixtures",
    "tests.plugins.run_checks",
]

gc.disable()
"""What is imported and collected is not garbage: examining it again and again takes a third of the time of the collection."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From here on, what tests make may be garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _models_of_services() -> Iterator[None]:
    """A process reads the models of AWS's services once."""
    with aws_models.read_once():
        yield


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[Callable[[str], Project]]:
    """Makes projects by name."""
    made: list[Project] = []

    def make(name: str) -> Project:
        made.append(Project(tmp_path / name, name))
        return made[-1]

    yield make
    for project in made:
        project.clean()


@pytest.fixture
def project(projects: Callable[[str], Project]) -> Project:
    """One project with its stack."""
    found = projects("project")
    found.write('command=["python", "train.py"], code="code", workers=1')
    found.init()
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    """A real browser; a missing one is a failure."""
    try:
        with chromium.browser() as found:
            yield found
    except NotInstalled as reason:
        pytest.fail(str(reason), pytrace=False)
