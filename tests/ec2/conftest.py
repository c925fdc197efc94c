"""Projects on EC2 in a box: one for each module, whose tests are the steps of one life."""

from collections.abc import Generator, Iterator
from types import ModuleType

import pytest

from tests.box.cloud import Box
from tests.ec2.project import Ec2Project

_PASSED = pytest.StashKey[set[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep which tests have passed."""
    report = yield
    if report.when == "call" and report.passed:
        item.config.stash.setdefault(_PASSED, set()).add(item.nodeid)
    return report


@pytest.fixture(scope="module")
def life(
    box: Box, box_image: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Ec2Project]:
    """The project of a module, with its stack; this process asks the box too. A module may name another class as `PROJECT`."""
    folder = tmp_path_factory.mktemp("ec2") / "project"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**box.environment, "XDG_STATE_HOME": str(folder / "state")}.items():
            patch.setenv(name, value)
        found: Ec2Project = getattr(request.module, "PROJECT", Ec2Project)(folder, box, box_image)
        patch.setenv("AWS_CONFIG_FILE", found.env.get("AWS_CONFIG_FILE", str(folder / "none")))
        found.write('command=["python", "train.py"], code="code", workers=1')
        found.init()
        yield found
        found.clean()


@pytest.fixture
def project(life: Ec2Project, request: pytest.FixtureRequest) -> Ec2Project:
    """The project of the module. Each test goes on where the one above it has ended, and fails at once where that has not passed."""
    passed = request.config.stash.get(_PASSED, set())
    file = request.node.nodeid.partition("::")[0]
    for name in _before(request.module, request.node.name):
        if f"{file}::{name}" not in passed:
            pytest.fail(f"it goes on from {name}, which has not passed: run the whole file", pytrace=False)
    return life


def _before(module: ModuleType, name: str) -> list[str]:
    """The tests that are above this one."""
    names = [one for one in vars(module) if one.startswith("test_")]
    return names[: names.index(name)]
