"""Clusters to call the command on."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli.calling import ARGUMENTS, TRAIN, open_gate
from tests.integration.conftest import Project


@pytest.fixture
def training(projects: Callable[[str], Project]) -> Iterator[Project]:
    """A project whose cluster trains until the gate is opened."""
    project = projects("training")
    project.write(ARGUMENTS, TRAIN)
    project.init()
    project.up()
    project.until_running("ps-0", "worker-0", "worker-1")
    yield project
    open_gate(project)
