"""What the controller does for a report, a tick, a view and a copy: files opened, bytes read and sent. None of it may grow with what it
does not need."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.counting import READ, WRITE, counting
from tests.unit.cases import plan
from tests.unit.simulation import Launcher
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.controller_server import Server
from tfdeploy.agent.model.sync import RUN
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.wire.rpc import Client, task_token

SIZES = (10, 100, 1_000)

FILES_OF_A_REPORT = ["token"]
"""The token may be another one after an update: it is read at each call."""

BYTES_OF_A_REPORT = 600
"""With the head of the request."""

BYTES_OF_AN_ANSWER = 180
"""To a launcher whose program runs: without the addresses of the others, which it has."""

TOKEN = "a-token"


def running(folder: Path, workers: int) -> tuple[Controller, list[Launcher]]:
    controller = Controller(Record(folder / "record"))
    run = plan(workers=workers, metrics={"loss": r"loss (\S+)"}).run
    controller.submit_run(run)
    launchers = [Launcher(f"worker-{index}", port=20_000 + index) for index in range(workers)]
    _report(controller, launchers)
    for launcher in launchers:  # without the orders, which have all addresses: that is long for many tasks
        launcher.run = run.id
    _report(controller, launchers)
    for launcher in launchers:
        launcher.running, launcher.attempt = True, 1
    _report(controller, launchers)
    assert controller.sync(launchers[-1].report()).action == RUN
    return controller, launchers


def _report(controller: Controller, launchers: list[Launcher]) -> None:
    for launcher in launchers:
        launcher.generation = controller.sync(launcher.report()).generation
    controller.tick()


@contextmanager
def served(folder: Path, controller: Controller, hostname: str) -> Iterator[Client]:
    """The connection of a task's launcher to the controller."""
    (folder / "token").write_text(TOKEN)
    server = Server(f"unix:{folder / 'socket'}", folder / "token", controller)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        with Client(f"unix:{folder / 'socket'}", task_token(TOKEN, hostname)) as client:
            yield client
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("workers", SIZES)
def test_a_report_costs_the_same_among_many_tasks_and_a_tick_nothing_while_nothing_changes(
    tmp_path: Path, workers: int
) -> None:
    controller, launchers = running(tmp_path, workers)
    for launcher in launchers[:10]:
        with served(tmp_path, controller, launcher.hostname) as client:
            with counting() as acts:
                answer = client.call("POST", "/sync", json.dumps(launcher.report().to_dict()).encode())
            assert acts.files(READ, tmp_path) == FILES_OF_A_REPORT
            assert acts.files(WRITE, tmp_path) == []
            assert acts.bytes_to(str(tmp_path / "socket")) <= BYTES_OF_A_REPORT
            assert len(answer) <= BYTES_OF_AN_ANSWER
    with counting() as acts:
        for _ in range(10):
            controller.tick()
    assert acts.files(READ, tmp_path) == []
    assert acts.files(WRITE, tmp_path) == []
