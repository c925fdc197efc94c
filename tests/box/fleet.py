"""What EC2 does with machines: an instance of moto's and the machine under it change together."""

import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.box.disks import Disks
from tests.box.image.signals import EXIT_OF_REBOOT
from tests.box.machine import Floor, Launch, Machine
from tests.engine.cli import LABEL, docker, environment


class Fleet:
    """The machines of a box, by the ids of their instances."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.disks = Disks(floor.home / "disks")
        self.machines: dict[str, Machine] = {}
        self._instances: dict[str, Any] = {}

    def boot(self, launches: dict[str, tuple[Launch, Any]]) -> None:
        """Boot the machines of instances that have just been made, side by side."""
        made = [Machine(self.floor, launch) for launch, _ in launches.values()]
        for machine in made:
            name = machine.launch.instance_id
            self._instances[name] = launches[name][1]
            self.machines[name] = machine
        with ThreadPoolExecutor(len(made)) as pool:
            list(pool.map(Machine.boot, made))

    def attach(self, instance_id: str, device: str, volume_id: str, gib: int) -> None:
        """Attach a volume; one that has booted finds it at once."""
        self.disks.attach(instance_id, device, volume_id, gib)
        self._plug(instance_id)

    def detach(self, instance_id: str, device: str) -> None:
        """Take a volume off."""
        self.disks.detach(instance_id, device)
        self._plug(instance_id)

    def _plug(self, instance_id: str) -> None:
        if instance_id in self.machines:
            self.machines[instance_id].plug(self.disks.of(instance_id))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Follow machines that end by themselves."""
        command = ["docker", "-H", self.floor.outer, "events", f"--since={time.time():.0f}"]
        filters = ["type=container", "event=die", f"label={LABEL}={self.floor.name}"]
        show = ["--format", "{{.Actor.Attributes.name}}"]
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig=TERM", *command, *(f"--filter={word}" for word in filters), *show],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        thread = threading.Thread(target=self._follow, args=(process,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)
            thread.join()

    def remove(self) -> None:
        """Remove every machine, and whatever else carries the box's label."""
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(Machine.remove, self.machines.values()))
        found = docker(self.floor.outer, "ps", "--all", "--quiet", f"--filter=label={LABEL}={self.floor.name}").split()
        if found:
            docker(self.floor.outer, "rm", "--force", "--volumes", *found)
        self.disks.remove()

    def _follow(self, process: "subprocess.Popen[str]") -> None:
        for line in process.stdout or ():
            name = line.strip().removeprefix(f"{self.floor.name}-")
            if name in self.machines:
                self._ended(self.machines[name], self._instances[name])

    def _ended(self, machine: Machine, instance: Any) -> None:
        """Process 1 of a machine has ended: EC2 finds out what that means, unless EC2 itself has asked for it."""
        with machine.lock:
            code = machine.ended()
            if code is None or instance.state != "running":
                return
            if code == EXIT_OF_REBOOT:
                machine.start()
            elif instance.instance_initiated_shutdown_behavior == "terminate":
                instance.terminate()
            else:
                instance.stop()
