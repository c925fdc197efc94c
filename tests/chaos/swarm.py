"""Clusters on a Docker Swarm under random faults: their containers, services, volumes and networks."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex

import psutil

from tests.chaos.clocks import AWAY_SECONDS, PYTHON, ShiftedClocks, away_seconds
from tests.chaos.cluster import Apply, Cluster, Running
from tests.chaos.common_faults import COMMON
from tests.chaos.full_disk_end import END_SECONDS, STOP, end_run
from tests.chaos.process_faults import CONTROLLER, PROCESSES, later, suspend_for
from tests.chaos.record_disk import RecordDisk, fill_disk, find, release
from tests.chaos.schedule import Kind, Step
from tests.docker.project import DockerProject
from tests.engine import daemon, images
from tests.engine.cli import DockerFailed
from tests.waiting import until

DIRECTIONS = (("INPUT",), ("OUTPUT",), ("INPUT", "OUTPUT"))
SUPPLIES = ("secret", "config", "network")


@dataclass(frozen=True)
class Shared:
    """What the clusters of one call of the command share."""

    engine: str
    image: str
    project: str
    """Their project's name, which no other user of the engine has."""


@contextmanager
def shared() -> Iterator[Shared]:
    """The engine of the tests."""
    with daemon.engine() as address:
        yield Shared(address, images.python_image(address), f"chaos-{token_hex(3)}")


class SwarmCluster(Cluster):
    """One cluster on the engine."""

    COPIES = "docker"
    COMMAND_SECONDS = 240.0
    END_SECONDS = 180.0
    POLL_SECONDS = 1.0

    project: DockerProject

    def __init__(self, folder: Path, common: Shared, stack: str) -> None:
        project = DockerProject(folder, common.engine, common.image)
        project.name, project.stack = common.project, stack
        super().__init__(project)
        self.docker = project.docker
        self.filters = project.filters
        self.record_disk: RecordDisk | None = None
        self.engine = common.engine
        self.source = str(self.folder)
        """Where the engine finds the ledger."""
        self._names = project.left
        self._image = common.image

    def write(self, clock_steps: bool) -> None:
        volumes = [f"{self.source}:{self.folder}"]
        if clock_steps:
            self.clocks = ShiftedClocks(self.folder)
            volumes.append(f"{self.source}/{self.clocks.python().name}:{PYTHON}:ro")
        self.more = f'container={{"volumes": {volumes}}}'
        super().write(clock_steps)

    def start(self, name: str) -> Running:
        if name == "destroy":
            release(self)
        return super().start(name)

    def close(self) -> None:
        release(self)
        super().close()

    def find_record_disk(self) -> RecordDisk | None:
        """What can be under the record; None where there is none."""
        return find(self.docker, self._image, *self.filters())

    def left(self) -> list[str]:
        report = " ".join(self.story.outputs.values())
        found = [(kind, name) for kind, names in self._names().items() for name in names.split()]
        return [f"{kind} {name}" for kind, name in found if name not in report]

    def storage_exists(self, train_dir: str) -> bool:
        # After `destroy` a volume may be retained, but the next cluster has another.
        return bool(self.services())

    def state(self) -> str:
        """As the controller has it: the user's copy of the record is brought up to date by being asked for."""
        state = str(self.shown(must=False).get("state", ""))
        return state if state in ("succeeded", "failed", "stopped") else ""

    # The containers.

    def services(self) -> list[str]:
        """The names of the cluster's services."""
        with suppress(DockerFailed):
            return self.docker("service", "ls", "--format", "{{.Name}}", *self.filters()).split()
        return []

    def container(self, role: str) -> str:
        """The running container of a task or of the controller; empty for none."""
        name = next((name for name in self.services() if name.endswith(f"-{role}")), "")
        if not name:
            return ""
        chosen = ("--filter", f"label=com.docker.swarm.service.name={name}", "--filter", "status=running")
        with suppress(DockerFailed):
            return self.docker("ps", "--quiet", *chosen).partition("\n")[0]
        return ""

    def process(self, role: str) -> psutil.Process | None:
        """The first process of a container; None where there is none, or where it is another computer's."""
        with suppress(DockerFailed, psutil.Error, ValueError):
            if container := self.container(role):
                process = psutil.Process(int(self.docker("inspect", "--format", "{{.State.Pid}}", container)))
                return process if "agent.pyz" in " ".join(process.cmdline()) else None
        return None

    def note_stored(self, task: str) -> None:
        """A container's disk ends with it."""

    def record_folder(self) -> Path | None:
        """The controller's volume, where this computer can read it."""
        with suppress(DockerFailed, StopIteration):
            names = self.docker("volume", "ls", "--quiet", *self.filters()).split()
            name = next(name for name in names if name.endswith("-record"))
            folder = Path(self.docker("volume", "inspect", "--format", "{{.Mountpoint}}", name))
            return folder if folder.is_dir() else None
        return None


def remove_container(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """A task's container is removed by hand."""
    if not (container := cluster.container(step.task)):
        return ""
    cluster.note("cut", step.task)
    with suppress(DockerFailed):
        cluster.docker("rm", "--force", container)
    return f"removed {container}"


def remove_service(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """A task's service is removed by hand, or the controller's."""
    role = step.task if step.amount < 0.7 else CONTROLLER
    name = next((name for name in cluster.services() if name.endswith(f"-{role}")), "")
    if not name:
        return ""
    if role == CONTROLLER:
        cluster.note("cut")
    with suppress(DockerFailed):
        cluster.docker("service", "rm", name)
    return f"removed {name}"


def remove_volume(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """Services and containers are removed by hand, and the volume with the checkpoints, or with the record."""
    kind = "-train" if step.amount < 0.5 else "-record"
    names = [
        name for name in cluster.docker("volume", "ls", "--quiet", *cluster.filters()).split() if name.endswith(kind)
    ]
    if not names or not cluster.services():
        return ""
    cluster.note("cut")
    release(cluster)
    cluster.project.remove_by_hand()
    with suppress(DockerFailed):
        cluster.docker("volume", "rm", *names)
        cluster.note("storage_lost")
    return f"removed {', '.join(names)}"


def remove_supply(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """Services and containers are removed by hand, and a secret, a config or a network, which the engine keeps until then."""
    found = [
        (kind, name)
        for kind in SUPPLIES
        for name in sorted(cluster.docker(kind, "ls", "--format", "{{.Name}}", *cluster.filters()).split())
    ]
    if not found or not cluster.services():
        return ""
    kind, name = found[int(step.amount * len(found))]
    cluster.note("cut")
    cluster.project.remove_by_hand()
    cluster.docker(kind, "rm", name)
    return f"removed all services, and {kind} {name}"


def cut_network(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """A container hears nothing, or is not heard, or both, for half an hour by the clocks of the launchers."""
    role = step.task if step.seconds < 2.2 else CONTROLLER
    process = cluster.process(role)
    if not process:
        return ""
    done = cut_chains(cluster, process.pid, step, 2 * step.seconds)
    cluster.pass_time()
    return f"{role}: {done}"


def take_controller_away(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """The controller is suspended for half an hour by the clocks of the launchers, or its container does not exist for so long."""
    name = next((name for name in cluster.services() if name.endswith(f"-{CONTROLLER}")), "")
    process = cluster.process(CONTROLLER)
    if not process or not name:
        return ""
    seconds = away_seconds(step)
    if step.amount < 0.5:
        suspend_for(cluster.story, seconds, [process])
    else:

        def scale(replicas: int) -> None:
            with suppress(DockerFailed):
                cluster.docker("service", "scale", "--detach", f"{name}={replicas}")

        scale(0)
        psutil.wait_procs([process], END_SECONDS)  # until then it responds
        later(cluster.story, seconds, partial(scale, 1))
    cluster.pass_time()
    return f"{'suspended' if step.amount < 0.5 else 'ended'} for {AWAY_SECONDS} s, of which {seconds:.1f} s are real"


def suspend_engine(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """The engine does not respond for a while; its containers run on."""
    with suppress(OSError, psutil.NoSuchProcess):
        pid = Path(cluster.engine.removeprefix("unix://")).with_name("docker.pid").read_text()
        suspend_for(cluster.story, 4 * step.seconds, [psutil.Process(int(pid))])
        return f"suspended for {4 * step.seconds:.1f} s"
    return ""


def cut_chains(cluster: Cluster, pid: int, step: Step, seconds: float) -> str:
    """Drop what comes in, goes out, or both, in the network of a process, for so many seconds."""
    chains = DIRECTIONS[int(step.amount * len(DIRECTIONS))]
    enter = ("nsenter", "--target", str(pid), "--net", "iptables")
    rules = [(chain, "!", "-i" if chain == "INPUT" else "-o", "lo", "-j", "DROP") for chain in chains]

    def apply(action: str) -> None:
        for rule in rules:
            subprocess.run([*enter, action, *rule], capture_output=True, check=False)

    apply("-I")
    later(cluster.story, seconds, partial(apply, "-D"))
    return f"{' and '.join(chains)} cut for {seconds:.1f} s"


def end_on_full_disk(cluster: SwarmCluster, step: Step, running: Running | None) -> str:
    """The run is stopped while the disk with the record is full. It has space again only after that."""
    has_controller = any(name.endswith(f"-{CONTROLLER}") for name in cluster.services())
    done = fill_disk(cluster, step, running, has_space_later=False) if has_controller else ""
    if done and cluster.record_disk:
        try:
            until(lambda: cluster.container(CONTROLLER), "the controller runs")
            end_run(cluster, STOP)
        finally:
            cluster.record_disk.free()
        cluster.command("up")
    return done


FAULTS: dict[str, tuple[Kind, Apply]] = {
    **COMMON,
    **PROCESSES,
    "controller_away": (Kind(weight=4, touches=False), take_controller_away),
    "suspend_engine": (Kind(weight=2, touches=False), suspend_engine),
    "remove_container": (Kind(weight=2, tasks=True), remove_container),
    "remove_service": (Kind(weight=2, tasks=True), remove_service),
    "remove_volume": (Kind(during=False), remove_volume),
    "remove_supply": (Kind(weight=3, during=False), remove_supply),
    "cut_network": (Kind(weight=2, tasks=True, touches=False), cut_network),
    "disk_full": (Kind(weight=2, during=False, touches=False), fill_disk),
    "disk_full_at_end": (Kind(during=False), end_on_full_disk),
}
