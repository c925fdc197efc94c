"""Three hundred launchers at one controller, by real HTTP."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.unit.cases import plan
from tests.unit.simulation import Launcher
from tests.waiting import until
from tfdeploy.agent.rpc import CallError, Client, launcher_token
from tfdeploy.agent.sync import Order
from tfdeploy.backends.zipapp import application

TASKS = 300
THREADS = 10


@pytest.fixture
def address(tmp_path: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A controller in a process of its own, with a run of so many tasks."""
    (tmp_path / "agent.pyz").write_bytes(application())
    (tmp_path / "token").write_text("token")
    path = f"unix:{tmp_path / 'socket'}"
    command = [sys.executable, "-I", "-S", str(tmp_path / "agent.pyz"), "controller"]
    process = subprocess.Popen([*command, str(tmp_path / "record"), path, str(tmp_path / "token")])
    try:
        until((tmp_path / "socket").exists, "the controller listens")
        with Client(path, "token") as client:
            client.json("PUT", "/run", plan(workers=TASKS).run.to_dict())
        yield path, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


class Launchers(threading.Thread):
    """Some of the launchers, with one connection each; each syncs when its order says."""

    def __init__(self, address: str, hostnames: list[str], over: threading.Event) -> None:
        super().__init__()
        self.launchers = [Launcher(name, port=20_000 + number) for number, name in enumerate(hostnames)]
        self._clients = [Client(address, launcher_token("token"), 10.0) for _ in hostnames]
        self._due = [0.0] * len(hostnames)
        self._over = over
        self.syncs = 0
        self.errors: list[str] = []

    def run(self) -> None:
        while not self._over.is_set():
            place = min(range(len(self._due)), key=self._due.__getitem__)
            if self._over.wait(max(0.0, self._due[place] - time.monotonic())):
                break
            self._sync(place)
        for client in self._clients:
            client.close()

    def _sync(self, place: int) -> None:
        launcher = self.launchers[place]
        try:
            data = self._clients[place].json("POST", "/sync", launcher.report().to_dict())
        except (OSError, CallError) as error:
            self.errors.append(str(error))
            return
        self.syncs += 1
        order = Order.from_dict(data)
        before = launcher.report()
        launcher.obey(order, time.time())
        self._due[place] = time.monotonic() + (order.poll if launcher.report() == before else 0.0)


def test_three_hundred_tasks_start_soon_and_cost_little_then(address: tuple[str, psutil.Process]) -> None:
    path, controller = address
    over = threading.Event()
    names = [f"worker-{index}" for index in range(TASKS)]
    groups = [Launchers(path, names[number::THREADS], over) for number in range(THREADS)]
    try:
        for group in groups:
            group.start()
        until(lambda: all(launcher.running for group in groups for launcher in group.launchers), "all run", 120.0)
        used = controller.cpu_times()
        assert used.user + used.system <= 30.0
        with Client(path, "token") as client:
            until(lambda: _running(client) == TASKS, "the controller knows")
    finally:
        over.set()
        for group in groups:
            group.join()
    assert [error for group in groups for error in group.errors] == []


def _running(client: Client) -> int:
    tasks = client.json("POST", "/view", {})["run_state"]["tasks"]
    return sum(task["state"] == "running" for task in tasks.values())
