"""Few containers of a machine start at a time, and none waits for one that cannot start."""

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from tfdeploy.backends.docker.swarm import start_turns
from tfdeploy.backends.docker.swarm.start_turns import AT_ONCE, StartTurns


class Swarm:
    """Services whose containers start after some looks; those that were removed are not found."""

    def __init__(self, looks: int, removed: Collection[str] = ()) -> None:
        self.engine = SimpleNamespace(host="unix:///engine")
        self.looks = looks
        self.removed = removed
        self.looked: list[Sequence[str]] = []

    def started(self, service_ids: Sequence[str]) -> set[str]:
        self.looked.append(service_ids)
        if any(service_id in self.removed for service_id in service_ids):
            raise NotFound("gone")
        self.looks -= 1
        return set() if self.looks else set(service_ids[:1])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_turns, "_PAUSE", 0.0)


def create(turns: StartTurns, swarm: Any, count: int, machine: str = "m-0") -> None:
    for number in range(count):
        turns.wait(swarm, machine)
        turns.note(swarm, machine, f"{machine}-{number}")


def test_a_machine_has_few_containers_that_start_and_others_have_their_own() -> None:
    turns = StartTurns()
    swarm: Any = Swarm(looks=3)
    create(turns, swarm, AT_ONCE)
    create(turns, swarm, AT_ONCE, "m-1")
    assert swarm.looked == [], "none had to wait"
    turns.wait(swarm, "m-0")
    assert len(swarm.looked) == 3
    assert swarm.looked[-1] == [f"m-0-{number}" for number in range(AT_ONCE)]


def test_none_waits_for_a_container_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_turns, "_LONGEST_START", 0.05)
    turns, swarm = StartTurns(), Swarm(looks=1_000_000_000)
    create(turns, swarm, AT_ONCE + 1)
    looks = len(swarm.looked)
    create(turns, swarm, 3 * AT_ONCE)
    assert len(swarm.looked) == looks


def test_a_service_that_was_removed_is_not_waited_for() -> None:
    turns, swarm = StartTurns(), Swarm(looks=1_000_000_000, removed=["m-0-3"])
    create(turns, swarm, AT_ONCE + 1)
    assert len(swarm.looked) == 1
