"""Launchers that run no program, at a controller in a process of its own, by real HTTP: for a test, and for benchmarks."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.unit.cases import plan
from tests.unit.simulation import Launcher
from tests.waiting import until
from tfdeploy.agent.model.run_spec import RunSpec
from tfdeploy.agent.model.sync import Order
from tfdeploy.agent.wire.rpc import CallError, Client, task_token
from tfdeploy.backends.zipapp import compiled_application

THREADS = 10
LONG = ("spec", "address_book")
"""What grows with the number of tasks in an order. Each launcher decodes it on its own machine: one process that did it for all
would be what is measured."""

_TOKEN = "token"


@dataclass(frozen=True)
class RunningController:
    """A controller, with a run of so many workers."""

    address: str
    folder: Path
    run: RunSpec
    process: psutil.Process

    def client(self) -> Client:
        """For the calls of an administrator."""
        return Client(self.address, _TOKEN)


@contextmanager
def running_controller(folder: Path, workers: int, **args: Any) -> Iterator[RunningController]:
    """A controller that is terminated in the end, with a run by these arguments. Its record is in the folder `record`."""
    (folder / "agent.pyz").write_bytes(compiled_application())
    (folder / "token").write_text(_TOKEN)
    address = f"unix:{folder / 'socket'}"
    command = [sys.executable, "-I", "-S", str(folder / "agent.pyz"), "controller"]
    process = subprocess.Popen([*command, str(folder / "record"), address, str(folder / "token")])
    try:
        until((folder / "socket").exists, "the controller listens")
        made = RunningController(
            address, folder / "record", plan(workers=workers, **args).run, psutil.Process(process.pid)
        )
        with made.client() as client:
            client.json("PUT", "/run", made.run.to_dict())
        yield made
    finally:
        process.terminate()
        process.wait()


class Launchers(threading.Thread):
    """Some of the launchers, with one connection each; each syncs when its order says."""

    def __init__(self, address: str, hostnames: Sequence[str], over: threading.Event) -> None:
        super().__init__()
        self.launchers = [Launcher(name, port=20_000 + number) for number, name in enumerate(hostnames)]
        self._clients = [Client(address, task_token(_TOKEN, name), 10.0) for name in hostnames]
        self._due = [0.0] * len(hostnames)
        self._over = over
        self.syncs = 0
        self.errors: list[str] = []
        self.polls = [0.0] * len(hostnames)
        """Seconds until the next sync of each, by its latest order."""

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
        order = Order.from_dict({name: value for name, value in data.items() if name not in LONG})
        before = launcher.report()
        launcher.obey(order, time.time())
        self.polls[place] = order.poll if launcher.report() == before else 0.0
        self._due[place] = time.monotonic() + self.polls[place]


@contextmanager
def launchers_of(controller: RunningController) -> Iterator[list[Launchers]]:
    """A launcher for each task of the run; their threads end in the end."""
    over = threading.Event()
    names = [task.hostname for task in controller.run.tasks]
    groups = [Launchers(controller.address, names[number::THREADS], over) for number in range(THREADS)]
    try:
        for group in groups:
            group.start()
        yield groups
    finally:
        over.set()
        for group in groups:
            group.join()
