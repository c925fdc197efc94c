"""A Swarm of two machines under random faults: their sudden death and return, and the network between them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex

from tests.chaos.clocks import silence_seconds
from tests.chaos.cluster import Apply, Running
from tests.chaos.common_faults import COMMON
from tests.chaos.process_faults import later
from tests.chaos.schedule import Kind, Step
from tests.chaos.swarm import Shared as SharedEngine
from tests.chaos.swarm import SwarmCluster, cut_chains, remove_container, remove_service
from tests.engine import daemon, images
from tests.engine.cli import DockerFailed, docker
from tests.engine.nested import SHARED, Nested, nested

HOSTNAMES = ("m0", "m1")
"""The first one manages the Swarm."""


@dataclass(frozen=True)
class Shared:
    """What the clusters of one call of the command share."""

    engine: SharedEngine
    machines: Nested
    disk: Path
    """Where this computer finds the folder that the machines share."""


@contextmanager
def shared() -> Iterator[Shared]:
    """Two machines in containers of the engine."""
    with daemon.engine() as address, nested(address, HOSTNAMES) as machines:
        image = images.python_image(address)
        machines.load(image)
        volume = machines.machines["m0"].container.removesuffix("-m0")
        disk = Path(docker(address, "volume", "inspect", "--format", "{{.Mountpoint}}", volume))
        yield Shared(SharedEngine(machines.manager, image, f"chaos-{token_hex(3)}"), machines, disk)


class MachinesCluster(SwarmCluster):
    """One cluster on the two machines."""

    PACE = 0.4
    SETTLE_SECONDS = 30.0

    def __init__(self, folder: Path, common: Shared, stack: str) -> None:
        super().__init__(folder, common.engine, stack)
        self.machines = common.machines
        ledger = common.disk / folder.name
        ledger.mkdir()
        ledger.chmod(0o777)
        self.folder.rmdir()
        self.folder.symlink_to(ledger)
        self.source = f"{SHARED}/{folder.name}"


def kill_machine(cluster: MachinesCluster, step: Step, running: Running | None) -> str:
    """A machine's sudden death, with its containers, and its return."""
    hostname = HOSTNAMES[int(step.amount * len(HOSTNAMES))]
    cluster.note("cut")
    cluster.story.machines_failed = True
    with suppress(DockerFailed):
        cluster.machines.kill(hostname)
    later(cluster.story, 4 * step.seconds, partial(cluster.machines.start, hostname))
    return f"{hostname} is dead for {4 * step.seconds:.0f} s"


def kill_engine(cluster: MachinesCluster, step: Step, running: Running | None) -> str:
    """The sudden death of a machine's engine; it starts again, and ends the containers that it finds."""
    hostname = HOSTNAMES[int(step.amount * len(HOSTNAMES))]
    cluster.note("cut")
    cluster.story.machines_failed = True

    def wait() -> None:
        cluster.machines.machines[hostname].wait()
        cluster.machines.wait(hostname)

    cluster.story.heals.append(wait)
    with suppress(DockerFailed):
        cluster.machines.kill_engine(hostname)
        return f"the engine of {hostname} is killed"
    return ""


def cut_machine(cluster: MachinesCluster, step: Step, running: Running | None) -> str:
    """A machine hears nothing, or is not heard, or both, for half an hour by the agents' clocks."""
    hostname = HOSTNAMES[step.seconds > 1.7]
    container = cluster.machines.machines[hostname].container
    pid = docker(cluster.machines.outer, "inspect", "--format", "{{.State.Pid}}", container)
    done = cut_chains(cluster, int(pid), step, silence_seconds(step))
    cluster.pass_time()
    return f"{hostname}: {done}"


def suspend_engine(cluster: MachinesCluster, step: Step, running: Running | None) -> str:
    """The engine of a machine does not respond for a while; its containers run on."""
    hostname = HOSTNAMES[step.amount < 0.5]

    def send(signal: str) -> None:
        with suppress(DockerFailed):
            container = cluster.machines.machines[hostname].container
            docker(cluster.machines.outer, "exec", container, "pkill", f"--signal={signal}", "--exact", "dockerd")

    send("STOP")
    later(cluster.story, silence_seconds(step), partial(send, "CONT"))
    return f"the engine of {hostname} is suspended for {silence_seconds(step):.0f} s"


FAULTS: dict[str, tuple[Kind, Apply]] = {
    **COMMON,
    "remove_container": (Kind(tasks=True), remove_container),
    "remove_service": (Kind(tasks=True), remove_service),
    "kill_machine": (Kind(weight=4), kill_machine),
    "cut_machine": (Kind(weight=4, touches=False), cut_machine),
    "kill_engine": (Kind(weight=4), kill_engine),
    "suspend_engine": (Kind(weight=4, touches=False), suspend_engine),
}
