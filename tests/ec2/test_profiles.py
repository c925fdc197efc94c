"""The instance profile of each machine: an update gives one, changes it, and takes it off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.box.provider.provider import GIVEN, KINDS, given, paths
from tests.ec2.preparing import logged_in
from tests.ec2.registering import registered

INSTANCE, PROFILE = "aws:ec2/instance:Instance", "iamInstanceProfile"
MANAGER, WORKER = "mnist-ps-m0", "mnist-worker-m0"


@pytest.fixture(scope="module")
def home(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, logged_in(moto_endpoint, found, patch):
        yield found


def machines(home: Path, **arguments: Any) -> dict[str, dict[str, Any]]:
    """The inputs of each machine by name."""
    return {one.name: one.plain for one in registered(home, **arguments) if one.kind == INSTANCE}


def test_a_profile_that_is_no_longer_given_is_taken_off(home: Path) -> None:
    before, after = machines(home, ec2={"instance_profile": "mine"}), machines(home)
    assert {inputs[PROFILE] for inputs in before.values()} == {"mine"}
    assert after[WORKER].get(PROFILE) == ""
    assert after[MANAGER][PROFILE] not in ("", "mine")
    for name, inputs in before.items():
        assert PROFILE in paths(KINDS[INSTANCE], {**inputs, GIVEN: given(inputs)}, after[name]), name


def test_a_machine_that_has_none_is_left_as_it_is(home: Path) -> None:
    found = machines(home)[WORKER]
    assert paths(KINDS[INSTANCE], {**found, GIVEN: given(found)}, found) == []
