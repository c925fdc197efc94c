"""In which order groups of tests start, and which tests may use a fixture of a whole process."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.engine.fixtures import needs_engine
from tests.plugins.groups import Groups


def item(nodeid: str, *fixtures: str) -> Any:
    """A collected test."""
    return SimpleNamespace(nodeid=nodeid, fixturenames=fixtures)


def test_tests_that_empty_the_account_run_before_the_box_or_after_it() -> None:
    unit = item("tests/unit/backends/ec2/test_account.py::test_it")
    boots, ends = item("tests/ec2/test_boots.py::test_it", "box"), item("tests/ec2/test_ends.py::test_it", "box")
    emptying = item("tests/box/test_provider.py::test_it")
    contract = item("tests/contract/test_contract.py::test_it[ec2]", "box")
    items = [unit, boots, ends, emptying, contract]
    Groups().pytest_collection_modifyitems(items)
    assert items == [emptying, boots, ends, contract, unit]


def test_the_user_of_a_shared_fixture_belongs_to_one_of_its_groups() -> None:
    items = [item("tests/docker/test_mnist.py::test_it", "box")]
    with pytest.raises(pytest.UsageError, match="uses `box`: add it to one of"):
        Groups().pytest_collection_modifyitems(items)


@pytest.mark.parametrize(
    ("paths", "is_needed"),
    [
        (["tests/unit"], False),
        (["tests/unit/plan/test_plan.py::test_a", "/clone/tests/checks"], False),
        (["tests/unit", "tests/docker"], True),
        (["tests"], True),
    ],
)
def test_an_engine_is_started_only_where_a_test_may_need_one(paths: list[str], is_needed: bool) -> None:
    assert needs_engine(paths) == is_needed
