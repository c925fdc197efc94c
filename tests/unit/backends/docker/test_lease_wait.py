"""A task that moves off a machine that does not respond starts elsewhere only after the lease of its former launcher."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from tests.unit.props import task_props
from tests.unit.simulation import World
from tfdeploy.agent.run_state import RunResult, RunState
from tfdeploy.backends.base import CONTROLLER
from tfdeploy.backends.docker import task_access
from tfdeploy.backends.docker.engine.controller_client import ControllerClient
from tfdeploy.backends.docker.swarm import nodes
from tfdeploy.backends.docker.swarm.rolling_update import wait_for_lease
from tfdeploy.backends.docker.swarm.services import Service, task_service
from tfdeploy.backends.docker.task_access import DockerAccess
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.errors import BackendError
from tfdeploy.resources import TaskProvider


class Clock:
    """The time, which only waiting moves."""

    def __init__(self) -> None:
        self.now = 500.0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(time, "sleep", made.sleep)
    yield made
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("silent", "waited", "reason"),
    [
        (0.5, 0.0, ""),  # it responds, so the Swarm stops it
        (20.0, 100.0, "its launcher on the former machine last reported 20 s ago"),
        (121.0, 0.0, ""),
        (None, 120.0, "the controller does not respond"),
    ],
)
def test_the_wait_is_what_is_left_of_the_lease(
    clock: Clock, capsys: pytest.CaptureFixture[str], silent: float | None, waited: float, reason: str
) -> None:
    begin = clock.now
    wait_for_lease("worker-1", lambda: None if silent is None else silent + clock.now - begin)
    assert clock.now - begin == waited
    said = capsys.readouterr().out
    assert said.count("\n") == bool(waited), "one line says why, and for how long"
    assert (f"worker-1 starts in at most {waited:.0f} s: {reason}" in said) == bool(waited)


def test_the_wait_ends_when_the_machine_is_back(clock: Clock) -> None:
    begin = clock.now
    wait_for_lease("worker-1", lambda: 30.0 if clock.now < begin + 5 else 0.4)
    assert clock.now - begin == 5


class Engine:
    """An engine that manages two machines; one of them may not respond."""

    host = "unix:///d.sock"

    def __init__(self, state: str) -> None:
        self._state = state

    def call(self, request: Callable[[Any], Any]) -> Any:
        """Call the API."""
        return request(self)

    def nodes(self) -> list[dict[str, Any]]:
        """The machines `box` and `another`."""
        return [node("box", self._state), node("another", "ready")]


def node(hostname: str, state: str) -> dict[str, Any]:
    """A machine."""
    status = {"State": state, "Message": "heartbeat failure" if state == "down" else ""}
    return {"Description": {"Hostname": hostname}, "Status": status, "Spec": {"Availability": "active"}}


class Swarm:
    """A Swarm with these services."""

    cluster = task_props()["cluster"]

    def __init__(self, services: Sequence[str] = ("worker-1", CONTROLLER), state: str = "ready") -> None:
        self._services = services
        self.engine = Engine(state)
        self.applied: list[Service] = []

    def services(self) -> dict[str, Any]:
        """The existing services."""
        labels = dict(task_service(task_props()).labels)
        return {hostname: {"Spec": {"Labels": labels}} for hostname in self._services}

    def apply(self, desired: Service) -> None:
        """Create or update the service."""
        self.applied.append(desired)

    create = apply


class Controller:
    """A controller whose run has ended, and that has received nothing from the task for a while."""

    def __init__(self, machine: str | None = "box") -> None:
        self._begin = time.monotonic()
        self._machine = machine

    def task_machine(self, hostname: str) -> str | None:
        """Where its latest launcher is."""
        assert hostname == "worker-1"
        return self._machine

    def silent_seconds(self, hostname: str) -> float:
        """20 s when it is first asked."""
        assert hostname == "worker-1"
        return 20.0 + time.monotonic() - self._begin

    def current_run(self) -> RunState:
        """A run that has ended."""
        world = World(workers=2)
        world.job.result = RunResult("stopped", "", 0.0)
        return world.job


@pytest.mark.parametrize(("machine", "waited"), [("box", 0.0), ("another", 100.0)])
def test_an_update_that_moves_a_task_waits_and_another_does_not(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, machine: str, waited: float
) -> None:
    old = task_props()
    swarm, runner = Swarm(), DockerTaskRunner()
    monkeypatch.setattr(runner, "_swarm", lambda cluster: swarm)
    controller = Controller()
    monkeypatch.setattr(runner, "controller", lambda cluster: controller)
    begin = clock.now
    runner.update_task(old, task_props(machine=machine, memory=7))
    assert (clock.now - begin, len(swarm.applied)) == (waited, 1)


@pytest.mark.parametrize(
    ("services", "state", "former", "waited"),
    [
        ((CONTROLLER,), "down", "box", 100.0),
        ((CONTROLLER,), "down", None, 100.0),  # it is not known where the former launcher is
        ((CONTROLLER,), "down", "", 100.0),
        ((CONTROLLER,), "down", "another", 0.0),  # its machine responds, so the Swarm has stopped it
        ((CONTROLLER,), "ready", "box", 0.0),  # all machines respond: no container of a removed service is left
        ((CONTROLLER, "worker-1"), "down", "box", 0.0),  # it is adopted where it is
        ((), "down", "box", 0.0),  # the first update
    ],
)
def test_a_task_whose_service_is_gone_is_created_again_only_when_no_other_machine_can_run_it(
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    services: Sequence[str],
    state: str,
    former: str | None,
    waited: float,
) -> None:
    """What `heal` and `up --refresh` do, by way of the provider that they call."""
    swarm, controller = Swarm(services, state), Controller(former)
    monkeypatch.setattr(DockerTaskRunner, "_swarm", lambda *_: swarm)
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: controller)
    monkeypatch.setattr(nodes, "RECENT_SECONDS", -1.0)
    begin = clock.now
    TaskProvider().create(dict(task_props(machine="another")))
    assert (clock.now - begin, len(swarm.applied)) == (waited, 1)


@pytest.mark.parametrize("start_again", [DockerAccess.restart, DockerAccess.replace])
def test_a_task_is_not_started_again_on_a_machine_that_does_not_respond(
    monkeypatch: pytest.MonkeyPatch, start_again: Callable[..., None]
) -> None:
    monkeypatch.setattr(DockerAccess, "_swarm", lambda *_: Swarm(state="down"))
    monkeypatch.setattr(DockerAccess, "_engine", lambda *_: Engine("down"))
    monkeypatch.setattr(task_access, "to_restart", lambda *_: None)
    monkeypatch.setattr(task_access, "exclusive_volumes", lambda *_: [])
    monkeypatch.setattr(ControllerClient, "last_known_run", lambda _: None)
    for action in (start_again, partial(DockerAccess.restart_effect, replace=False)):
        with pytest.raises(BackendError, match=r"box is unreachable \(heartbeat failure\)\. `pulumi up` moves it"):
            action(DockerAccess(), task_props()["cluster"], "worker-1")
