"""What is known of the machines of a Swarm while many tasks are created."""

import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from tfdeploy.backends.docker.engine.engine import Engine
from tfdeploy.backends.docker.swarm.nodes import UnreachableMachines
from tfdeploy.errors import Unreachable


class SlowEngine:
    """An engine that takes three seconds for each call, and then fails or responds."""

    host = "unix:///engine"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
        self.fails, self.calls, self.now = fails, 0, 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def call(self, request: Callable[[Any], Any]) -> list[Any]:
        self.calls += 1
        self.now += 3.0
        if self.fails:
            raise Unreachable("it does not respond")
        return []


@pytest.mark.parametrize("fails", [False, True])
def test_tasks_that_are_created_together_wait_once_for_a_slow_engine(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    engine, machines = SlowEngine(monkeypatch, fails), UnreachableMachines()
    for _ in range(3):
        if fails:
            with pytest.raises(Unreachable, match="it does not respond"):
                machines.recent(cast(Engine, engine))
        else:
            assert machines.recent(cast(Engine, engine)) == {}
    assert engine.calls == 1
    engine.now += 3.0
    engine.fails = False
    assert machines.recent(cast(Engine, engine)) == {}
    assert engine.calls == 2
