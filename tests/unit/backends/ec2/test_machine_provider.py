"""The state of a machine, in a word."""

from typing import Any

import pytest

from tests.unit.backends.ec2.fleets import instance
from tfdeploy.backends.ec2.machine.machine_provider import machine_status
from tfdeploy.backends.ec2.machine.model import MachineState

NODE: dict[str, Any] = {
    "Status": {"State": "ready"},
    "Spec": {"Availability": "active"},
    "UpdatedAt": "2026-11-21T13:35:48.123456789Z",
}


@pytest.mark.parametrize(
    ("found", "node", "is_managed", "word"),
    [
        (instance("m", state="pending"), None, True, "booting"),
        (instance("m", state="stopping"), NODE, True, "stopping"),
        (instance("m", state="stopped"), NODE, True, "stopped"),
        (instance("m"), None, True, "connecting"),
        (instance("m"), {**NODE, "Status": {"State": "down"}}, True, "unreachable since 2026-11-21 13:35:48Z"),
        (instance("m"), {**NODE, "Spec": {"Availability": "drain"}}, True, "drain"),
        (instance("m"), NODE, True, "connected"),
        # The machine that manages the Swarm is gone.
        (instance("m"), None, False, "unknown"),
        (instance("m", state="pending"), None, False, "booting"),
    ],
)
def test_a_machine_has_its_word(found: MachineState, node: dict[str, Any] | None, is_managed: bool, word: str) -> None:
    assert machine_status(found, node, is_managed=is_managed) == word
