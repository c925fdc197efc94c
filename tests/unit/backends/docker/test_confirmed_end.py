"""A task starts in a new container only after something confirms that the program in the former one has ended."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from tests.unit.backends.conftest import Clock
from tests.unit.backends.docker.fake_engine import FakeApi, FakeSwarm, runner_of
from tests.unit.props import task_props
from tests.unit.simulation import World
from tfdeploy.agent.model.run_state import RunResult, RunState
from tfdeploy.backends import container_access
from tfdeploy.backends.base import CONTROLLER
from tfdeploy.backends.docker import task_access
from tfdeploy.backends.docker.engine.controller_client import ControllerClient
from tfdeploy.backends.docker.swarm.confirmed_end import FormerLauncher, wait_for_former_launcher
from tfdeploy.backends.docker.swarm.services import task_service
from tfdeploy.backends.docker.task_access import DockerAccess
from tfdeploy.backends.docker.task_runner import DockerTaskRunner
from tfdeploy.errors import BackendError, NotFound
from tfdeploy.resources import TaskProvider

DOWN = {"box": "unreachable (heartbeat failure)"}
NO_ANSWER = 60.0
"""For so long an update waits where nothing confirms the end."""


@pytest.mark.parametrize(
    ("former", "unreachable"),
    [
        (FormerLauncher("box", 20.0), {}),  # its machine responds, or is not in the Swarm any more
        (FormerLauncher("box", 20.0), {"another": DOWN["box"]}),
        (FormerLauncher("box", 0.0), DOWN),  # no program of it can run
        (FormerLauncher("", 0.0), DOWN),
    ],
)
def test_a_task_does_not_wait_where_its_former_program_cannot_run_on(
    clock: Clock, capsys: pytest.CaptureFixture[str], former: FormerLauncher, unreachable: Mapping[str, str]
) -> None:
    begin = clock.now
    wait_for_former_launcher("worker-1", lambda: former, lambda: unreachable)
    assert (clock.now, capsys.readouterr().out) == (begin, "")


@pytest.mark.parametrize("former", [FormerLauncher("box", 86_400.0), FormerLauncher("box", None), FormerLauncher()])
def test_silence_confirms_nothing_however_long_it_lasts(
    clock: Clock, capsys: pytest.CaptureFixture[str], former: FormerLauncher
) -> None:
    begin = clock.now
    with pytest.raises(BackendError, match=r"worker-1 is not started: box is .* `tfdeploy restart --lost box` moves"):
        wait_for_former_launcher("worker-1", lambda: former, lambda: DOWN)
    assert clock.now - begin == NO_ANSWER
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize("after", [{}, {"another": DOWN["box"]}])
def test_the_wait_ends_when_the_machine_is_back_or_was_removed(clock: Clock, after: Mapping[str, str]) -> None:
    begin, former = clock.now, FormerLauncher("box", 20.0)
    wait_for_former_launcher("worker-1", lambda: former, lambda: DOWN if clock.now < begin + 5 else after)
    assert clock.now - begin == 5


class Engine(FakeApi):
    """An engine that manages two machines; one of them may not respond."""

    def __init__(self, state: str) -> None:
        self._state = state
        self.removed: list[str] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [node("box", self._state), node("another", "ready")]

    def remove_node(self, node_id: str, force: bool) -> None:
        assert force
        self.removed.append(node_id)


def node(hostname: str, state: str) -> dict[str, Any]:
    status = {"State": state, "Message": "heartbeat failure" if state == "down" else ""}
    spec = {"Availability": "active"}
    return {"ID": f"id-{hostname}", "Description": {"Hostname": hostname}, "Status": status, "Spec": spec}


class Swarm(FakeSwarm):
    def __init__(self, services: Sequence[str] = ("worker-1", CONTROLLER), state: str = "ready") -> None:
        super().__init__()
        self._services = services
        self.engine = Engine(state)

    def services(self) -> dict[str, Any]:
        labels = dict(task_service(task_props()).labels)
        return {hostname: {"Spec": {"Labels": labels}} for hostname in self._services}


class Controller:
    """A controller whose run has ended, and that has received nothing from the task for a while."""

    def __init__(self, former: FormerLauncher) -> None:
        self._former = former

    def former_launcher(self, hostname: str, machine: str = "") -> FormerLauncher:
        assert hostname == "worker-1"
        return FormerLauncher(self._former.machine or machine, self._former.silent)

    def current_run(self) -> RunState:
        world = World(workers=2)
        world.job.result = RunResult("stopped", "", 0.0)
        return world.job


SILENT = FormerLauncher("box", 20.0)
REFUSED = pytest.raises(BackendError, match="worker-1 is not started: box is unreachable")


@pytest.mark.parametrize(
    ("changes", "state", "former", "applied"),
    [
        ({"machine": "another"}, "ready", SILENT, 1),  # the Swarm stops it
        ({"machine": "another"}, "down", SILENT, 0),
        ({"machine": "another"}, "down", FormerLauncher(silent=None), 0),
        ({"machine": "another"}, "down", FormerLauncher("another", 20.0), 1),
        ({"limits": {"memory": 7}}, "down", SILENT, 0),  # the same machine would have two of them when it is back
        ({}, "down", SILENT, 1),  # nothing changes
    ],
)
def test_an_update_replaces_a_task_only_when_its_former_machine_can_stop_it(
    clock: Clock, changes: dict[str, Any], state: str, former: FormerLauncher, applied: int
) -> None:
    swarm, begin = Swarm(state=state), clock.now
    update = partial(runner_of(swarm, Controller(former)).update_task, task_props(), task_props(**changes))
    with nullcontext() if applied else REFUSED:
        update()
    assert (clock.now - begin, len(swarm.applied)) == (0.0 if applied else NO_ANSWER, applied)


@pytest.mark.parametrize(
    ("services", "state", "former", "waited"),
    [
        ((CONTROLLER,), "down", "box", NO_ANSWER),
        ((CONTROLLER,), "down", "", NO_ANSWER),  # it is not known where the former launcher is
        ((CONTROLLER,), "down", "another", 0.0),  # its machine responds, so the Swarm has stopped it
        ((CONTROLLER,), "ready", "box", 0.0),  # all machines respond: no container of a removed service is left
        ((CONTROLLER, "worker-1"), "down", "box", 0.0),  # it is adopted where it is
        ((), "down", "box", 0.0),  # the first update
    ],
)
def test_a_task_whose_service_is_gone_is_created_again_only_when_no_other_machine_can_run_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, services: Sequence[str], state: str, former: str, waited: float
) -> None:
    """What `heal` and `up --refresh` do, by way of the provider that they call."""
    swarm, controller = Swarm(services, state), Controller(FormerLauncher(former, 20.0))
    monkeypatch.setattr(DockerTaskRunner, "objects", lambda *_: swarm)
    monkeypatch.setattr(DockerTaskRunner, "controller", lambda *_: controller)
    begin = clock.now
    create = partial(TaskProvider().create, dict(task_props(machine="another")))
    with REFUSED if waited else nullcontext():
        create()
    assert (clock.now - begin, len(swarm.applied)) == (waited, not waited)


@pytest.mark.parametrize("start_again", [DockerAccess.restart, partial(DockerAccess.restart, replace=True)])
def test_a_task_is_not_started_again_on_a_machine_that_does_not_respond(
    monkeypatch: pytest.MonkeyPatch, start_again: Callable[..., None]
) -> None:
    monkeypatch.setattr(DockerAccess, "_swarm", lambda *_: Swarm(state="down"))
    monkeypatch.setattr(DockerAccess, "_engine", lambda *_: Engine("down"))
    monkeypatch.setattr(container_access, "to_restart", lambda *_: None)
    monkeypatch.setattr(task_access, "exclusive_volumes", lambda *_: [])
    monkeypatch.setattr(ControllerClient, "last_known_run", lambda _: None)
    for action in (start_again, partial(DockerAccess.restart_effect, replace=False)):
        with pytest.raises(BackendError, match=r"box is unreachable \(heartbeat failure\)\. .* --lost box` moves its"):
            action(DockerAccess(DockerTaskRunner()), task_props()["cluster"], "worker-1")


def test_the_word_of_the_user_removes_a_machine_that_does_not_respond_from_the_swarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, cluster, access = Engine("down"), task_props()["cluster"], DockerAccess(DockerTaskRunner())
    monkeypatch.setattr(DockerAccess, "_swarm", lambda *_: Swarm(state="down"))
    monkeypatch.setattr(DockerAccess, "_engine", lambda *_: engine)
    assert "You promise that box is off" in access.lost_effect(cluster, "box")
    assert engine.removed == []
    access.confirm_lost(cluster, "box")
    assert engine.removed == ["id-box"]
    with pytest.raises(BackendError, match="another responds, so it is not lost"):
        access.confirm_lost(cluster, "another")
    with pytest.raises(NotFound, match="the Swarm has no machine 'boy'"):
        access.lost_effect(cluster, "boy")
